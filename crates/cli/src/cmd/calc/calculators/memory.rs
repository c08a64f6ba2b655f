//! Socket buffers and their memory.

use std::time::Duration;

use clap::{Args, ValueEnum};
use linerate_analysis::formulas::{
    PageCount, SEND_MEMORY_FACTOR, SEND_MEMORY_FACTOR_BBR, WindowScale, memory_of_pages, pages_of_memory,
    receive_buffer_for, segment_memory, send_memory, socket_memory, usable_window, window_for_rate,
    window_of_send_memory, window_rate, window_share,
};
use linerate_documents::calculation::CalculationUnit;
use linerate_units::{BitRate, ByteCount, Ratio, SegmentCount, StreamCount};

use super::super::answer::{CalculatorAnswer, Quantity};
use super::super::values::{self, count, rate, size, time};
use super::{SegmentSize, TOO_SMALL};

#[derive(Debug, Args)]
pub(crate) struct BufferArguments {
    /// Rate, with --rtt: gives the buffer
    #[arg(long, value_parser = rate, requires = "rtt", conflicts_with_all = ["window", "buffer"])]
    rate: Option<BitRate>,
    /// Round-trip time
    #[arg(long, value_name = "TIME", value_parser = time)]
    rtt: Option<Duration>,
    /// Window: gives the buffer
    #[arg(long, value_name = "SIZE", value_parser = size, conflicts_with = "buffer")]
    window: Option<ByteCount>,
    #[arg(help = "Receive buffer (tcp_rmem's third value): gives the window, and with --rtt the rate")]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    buffer: Option<ByteCount>,
    #[command(flatten)]
    segment: SegmentSize,
    /// Measured window share of the buffer; without it, computed from --mss
    #[arg(long, value_parser = values::share)]
    share: Option<Ratio>,
}

impl BufferArguments {
    pub(super) fn compute(&self) -> Result<CalculatorAnswer, String> {
        let share = self.share.unwrap_or_else(|| window_share(self.segment.size));
        let needed = self.rate.zip(self.rtt).map(|(rate, rtt)| window_for_rate(rate, rtt));
        let answer = match (self.window.or(needed), self.buffer) {
            (Some(window), _) => {
                CalculatorAnswer::new("receive buffer", receive_buffer_for(window, share).ok_or(TOO_SMALL)?)
                    .result("window", needed)
            }
            (None, Some(buffer)) => {
                let window = usable_window(buffer, share);
                CalculatorAnswer::new("window", window)
                    .result("rate", self.rtt.and_then(|rtt| window_rate(window, rtt)))
            }
            (None, None) => return Err("give --rate and --rtt, or --window, or --buffer".to_owned()),
        };
        Ok(answer
            .input("rate", self.rate)
            .input("round-trip time", self.rtt)
            .input("window", self.window)
            .input("receive buffer", self.buffer)
            .input("segment", Some(self.segment.size.byte_count()))
            .derived("share of payload", Some(Quantity::Share(share)))
            .derived("buffer in windows", Some(Quantity::Number(share.get().recip()))))
    }
}

/// Congestion controls with their send buffers.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum SendBufferControl {
    Cubic,
    Reno,
    Bbr,
}

#[derive(Debug, Args)]
pub(crate) struct MemoryArguments {
    /// Rate, with --rtt: gives the send buffer
    #[arg(long, value_parser = rate, requires = "rtt", conflicts_with_all = ["segments", "buffer"])]
    rate: Option<BitRate>,
    /// Round-trip time
    #[arg(long, value_name = "TIME", value_parser = time)]
    rtt: Option<Duration>,
    /// Congestion window in segments: gives the send buffer
    #[arg(long, value_name = "COUNT", value_parser = count, conflicts_with = "buffer")]
    segments: Option<u64>,
    #[arg(help = "Send buffer (tcp_wmem's third value): gives the congestion window, and with --rtt the rate")]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    buffer: Option<ByteCount>,
    #[command(flatten)]
    segment: SegmentSize,
    /// Congestion control
    #[arg(long, value_name = "NAME", default_value = "cubic")]
    congestion: SendBufferControl,
}

impl MemoryArguments {
    pub(super) fn compute(&self) -> Result<CalculatorAnswer, String> {
        let segment = self.segment.size;
        let factor = match self.congestion {
            SendBufferControl::Bbr => SEND_MEMORY_FACTOR_BBR,
            SendBufferControl::Cubic | SendBufferControl::Reno => SEND_MEMORY_FACTOR,
        };
        let product = self.rate.zip(self.rtt).map(|(rate, rtt)| window_for_rate(rate, rtt).get());
        let segments = self.segments.or(product.map(|bytes| bytes.div_ceil(u64::from(segment.get()))));
        let counted = |window: SegmentCount| Quantity::Count(window.get(), CalculationUnit::Segments);
        let (answer, window) = match (segments.map(SegmentCount::new), self.buffer) {
            (Some(window), _) => (CalculatorAnswer::new("send buffer", send_memory(window, segment, factor)), window),
            (None, Some(buffer)) => {
                let window = window_of_send_memory(buffer, segment, factor).ok_or(TOO_SMALL)?;
                let rate = self.rtt.and_then(|rtt| window_rate(window * segment.byte_count(), rtt));
                (CalculatorAnswer::new("congestion window", counted(window)).result("rate", rate), window)
            }
            (None, None) => return Err("give --rate and --rtt, or --segments, or --buffer".to_owned()),
        };
        Ok(answer
            .input("rate", self.rate)
            .input("round-trip time", self.rtt)
            .input("segment", Some(segment.byte_count()))
            .input("send buffer", self.buffer)
            .derived("memory of a segment", Some(segment_memory(segment)))
            .derived("congestion window", self.buffer.is_none().then(|| counted(window)))
            .derived("in flight", Some(window * segment.byte_count())))
    }
}

#[derive(Debug, Args)]
pub(crate) struct SocketsArguments {
    /// Number of sockets, for example 1M
    #[arg(value_parser = count)]
    sockets: u64,
    /// Buffer size per socket, for example 256KiB
    #[arg(value_parser = size)]
    buffer: ByteCount,
    #[arg(help = "2 for SO_SNDBUF and SO_RCVBUF, which the kernel doubles; 1 for tcp_rmem and tcp_wmem")]
    #[arg(long, value_name = "COUNT", default_value = "2", value_parser = count)]
    factor: u64,
}

impl SocketsArguments {
    pub(super) fn compute(&self) -> CalculatorAnswer {
        CalculatorAnswer::new("memory", socket_memory(StreamCount::new(self.sockets), self.buffer, self.factor))
            .input("sockets", Some(Quantity::Count(self.sockets, CalculationUnit::Sockets)))
            .input("buffer per socket", Some(self.buffer))
            .input("factor", Some(Quantity::Count(self.factor, CalculationUnit::Times)))
    }
}

#[derive(Debug, Args)]
pub(crate) struct PagesArguments {
    #[command(flatten)]
    known: PagesOrMemory,
    /// Size of a page (getconf PAGESIZE)
    #[arg(long, value_name = "SIZE", default_value = "4096", value_parser = size)]
    page: ByteCount,
}

/// Number of pages, or their memory.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct PagesOrMemory {
    /// Number of pages: gives the memory
    #[arg(long, value_name = "COUNT", value_parser = count)]
    pages: Option<u64>,
    /// Memory: gives the number of pages
    #[arg(long, value_name = "SIZE", value_parser = size)]
    memory: Option<ByteCount>,
}

impl PagesArguments {
    pub(super) fn compute(&self) -> Result<CalculatorAnswer, String> {
        let counted = |pages: u64| Quantity::Count(pages, CalculationUnit::Pages);
        let memory = self.known.pages.map(|pages| memory_of_pages(PageCount::new(pages), self.page));
        let pages = self.known.memory.map(|memory| pages_of_memory(memory, self.page).ok_or(TOO_SMALL)).transpose()?;
        Ok(CalculatorAnswer::default()
            .result("memory", memory)
            .result("pages", pages.map(|pages| counted(pages.get())))
            .input("pages", self.known.pages.map(counted))
            .input("memory", self.known.memory)
            .input("page", Some(self.page)))
    }
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct ScaleArguments {
    /// Window: gives the scale that offers it
    #[arg(long, value_name = "SIZE", value_parser = size)]
    window: Option<ByteCount>,
    #[arg(help = "Larger of tcp_rmem's third value and net.core.rmem_max: gives the scale that Linux announces")]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    buffer: Option<ByteCount>,
    /// Bits by which the window field is shifted, 0 to 14: gives the largest window
    #[arg(long, value_name = "BITS", value_parser = clap::value_parser!(u8).range(0..=14))]
    scale: Option<u8>,
}

impl ScaleArguments {
    pub(super) fn compute(&self) -> Result<CalculatorAnswer, String> {
        let bits = |scale: WindowScale| Quantity::Count(scale.get().into(), CalculationUnit::Bits);
        let too_large = "no scale is sufficient: TCP's largest window is 1 GiB (65535 bytes times 2^14)";
        let for_window = self.window.map(|window| WindowScale::for_window(window).ok_or(too_large)).transpose()?;
        let of_buffer = self.buffer.map(WindowScale::of_buffer_limit);
        let given = self.scale.and_then(WindowScale::new);
        Ok(CalculatorAnswer::default()
            .result("window scale", for_window.or(of_buffer).map(bits))
            .result("largest window", given.map(WindowScale::largest_window))
            .input("window", self.window)
            .input("buffer limit", self.buffer)
            .input("window scale", given.map(bits))
            .derived("largest window of that scale", for_window.or(of_buffer).map(WindowScale::largest_window))
            .derived("largest buffer limit for it", given.map(WindowScale::buffer_limit)))
    }
}
