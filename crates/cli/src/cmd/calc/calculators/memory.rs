//! Buffers, and the memory behind them.

use linerate_model::formulas::{
    PageCount, SEND_MEMORY_FACTOR, SEND_MEMORY_FACTOR_BBR, WindowScale, buffer_of_socket_memory, entry,
    memory_of_pages, pages_of_memory, receive_buffer_for, segment_memory, send_memory, socket_memory,
    sockets_of_memory, usable_window, window_for_rate, window_of_send_memory, window_rate, window_share,
};
use linerate_units::{Ratio, SegmentCount, StreamCount};

use super::{Calculator, Kind, Known, Quantity, RATE, RTT, SEGMENT, TOO_LONG, TOO_SMALL, Value, WINDOW};
use super::{count, rate, size, time};
use crate::cmd::calc::solve::{Derived, Relation};

pub(super) static BUFFER: Calculator = Calculator {
    name: "buffer",
    about: "The receive buffer that a window needs, and what a buffer carries",
    quantities: &[
        RATE,
        RTT,
        Quantity::new("buffer", "receive buffer", Kind::Size, "6MiB", "Receive buffer (tcp_rmem's third value)"),
        WINDOW,
        SEGMENT,
        Quantity::new(
            "share",
            "share of payload",
            Kind::Share,
            "62.5%",
            "Share of the buffer that is window, as measured; without it, by --mss",
        ),
    ],
    relations: &[
        Relation {
            formula: entry::USABLE_WINDOW,
            solve: &[
                ("buffer", |k| size(receive_buffer_for(k.size("window")?, payload_share(k)?), TOO_SMALL)),
                ("window", |k| Ok(Value::Size(usable_window(k.size("buffer")?, payload_share(k)?)))),
            ],
        },
        Relation {
            formula: entry::WINDOW_RATE,
            solve: &[
                ("window", |k| Ok(Value::Size(window_for_rate(k.rate("rate")?, k.time("rtt")?)))),
                ("rate", |k| rate(window_rate(k.size("window")?, k.time("rtt")?), TOO_SMALL)),
                ("rtt", |k| time(k.size("window")? / k.rate("rate")?, TOO_LONG)),
            ],
        },
    ],
    derived: &[
        Derived { title: "share of payload", kind: Kind::Share, compute: |k| payload_share(k).map(Value::Ratio) },
        Derived {
            title: "buffer in windows",
            kind: Kind::Factor,
            compute: |k| Ok(Value::Number(payload_share(k)?.get().recip())),
        },
    ],
    next: &[
        |k| k.ask("scale", &[("buffer", "buffer")]),
        |k| k.ask("memory", &[("rate", "rate"), ("rtt", "rtt"), ("mss", "mss")]),
    ],
    examples: &["10G 117ms", "--window 146.25MB", "6MiB 117ms", "6291456 --mss 8948", "--window 1MB --share 62.5%"],
};

fn payload_share(known: &Known) -> Result<Ratio, String> {
    match known.ratio("share") {
        Ok(share) => Ok(share),
        Err(_) => Ok(window_share(known.mss("mss")?)),
    }
}

pub(super) static MEMORY: Calculator = Calculator {
    name: "memory",
    about: "The send buffer that Linux aims at for a congestion window",
    quantities: &[
        RATE,
        RTT,
        Quantity::new("memory", "send buffer", Kind::Size, "4MiB", "Send buffer (tcp_wmem's third value)"),
        Quantity::new("segments", "congestion window", Kind::Count("segments"), "100", "Congestion window in segments"),
        SEGMENT,
        Quantity::new(
            "congestion",
            "congestion control",
            Kind::Choice(&["cubic", "reno", "bbr"]),
            "cubic",
            "Congestion control",
        )
        .default("cubic"),
    ],
    relations: &[
        Relation {
            formula: entry::SEND_MEMORY,
            solve: &[
                ("memory", |k| {
                    let window = SegmentCount::new(k.count("segments")?);
                    Ok(Value::Size(send_memory(window, k.mss("mss")?, send_factor(k)?)))
                }),
                ("segments", |k| {
                    let window = window_of_send_memory(k.size("memory")?, k.mss("mss")?, send_factor(k)?);
                    count(window.map(SegmentCount::get), TOO_SMALL)
                }),
            ],
        },
        Relation {
            formula: entry::WINDOW_RATE,
            solve: &[
                ("segments", |k| {
                    let window = window_for_rate(k.rate("rate")?, k.time("rtt")?);
                    let segment = k.size("mss")?;
                    count((!segment.is_zero()).then(|| window.get().div_ceil(segment.get())), TOO_SMALL)
                }),
                ("rate", |k| rate(window_rate(in_flight(k)?, k.time("rtt")?), TOO_SMALL)),
                ("rtt", |k| time(in_flight(k)? / k.rate("rate")?, TOO_LONG)),
            ],
        },
    ],
    derived: &[
        Derived {
            title: "memory of a segment",
            kind: Kind::Size,
            compute: |k| Ok(Value::Size(segment_memory(k.mss("mss")?))),
        },
        Derived { title: "in flight", kind: Kind::Size, compute: |k| in_flight(k).map(Value::Size) },
    ],
    next: &[|k| {
        let mut words = vec!["sockets".to_owned(), "--sockets".to_owned(), "1000".to_owned(), "--factor".to_owned()];
        words.push("1".to_owned());
        words.extend(k.ask("", &[("buffer", "memory")])?.into_iter().skip(1));
        Ok(words)
    }],
    examples: &["1G 53ms", "--segments 10", "4MiB 53ms", "1G 53ms --congestion bbr"],
};

fn in_flight(known: &Known) -> Result<linerate_units::ByteCount, String> {
    Ok(SegmentCount::new(known.count("segments")?) * known.mss("mss")?.byte_count())
}

fn send_factor(known: &Known) -> Result<u64, String> {
    Ok(if known.choice("congestion")? == "bbr" { SEND_MEMORY_FACTOR_BBR } else { SEND_MEMORY_FACTOR })
}

pub(super) static SOCKETS: Calculator = Calculator {
    name: "sockets",
    about: "The most memory that the buffers of many sockets can take",
    quantities: &[
        Quantity::new("sockets", "sockets", Kind::Count("sockets"), "1M", "How many sockets"),
        Quantity::new("buffer", "buffer of each", Kind::Size, "256KiB", "Buffer that each asks for"),
        Quantity::new("memory", "memory", Kind::Size, "512GB", "Memory for all of them"),
        Quantity::new(
            "factor",
            "factor",
            Kind::Count("times"),
            "2",
            "2 for SO_SNDBUF and SO_RCVBUF, which the kernel doubles; 1 for tcp_rmem and tcp_wmem",
        )
        .default("2"),
    ],
    relations: &[Relation {
        formula: entry::SOCKET_MEMORY,
        solve: &[
            ("memory", |k| {
                let sockets = StreamCount::new(k.count("sockets")?);
                Ok(Value::Size(socket_memory(sockets, k.size("buffer")?, k.count("factor")?)))
            }),
            ("sockets", |k| {
                let sockets = sockets_of_memory(k.size("memory")?, k.size("buffer")?, k.count("factor")?);
                count(sockets.map(StreamCount::get), TOO_SMALL)
            }),
            ("buffer", |k| {
                let sockets = StreamCount::new(k.count("sockets")?);
                size(buffer_of_socket_memory(k.size("memory")?, sockets, k.count("factor")?), TOO_SMALL)
            }),
        ],
    }],
    derived: &[],
    next: &[|k| k.ask("pages", &[("memory", "memory")])],
    examples: &["1M 256KiB", "--memory 64GiB --buffer 6MiB", "--memory 64GiB --sockets 10k"],
};

pub(super) static PAGES: Calculator = Calculator {
    name: "pages",
    about: "Memory in pages, as tcp_mem and udp_mem count it",
    quantities: &[
        Quantity::new("pages", "pages", Kind::Count("pages"), "16777216", "Number of pages"),
        Quantity::new("memory", "memory", Kind::Size, "64GiB", "Memory"),
        Quantity::new("page", "page", Kind::Size, "4096", "Size of a page (getconf PAGESIZE)").default("4096"),
    ],
    relations: &[Relation {
        formula: entry::MEMORY_PAGES,
        solve: &[
            ("memory", |k| Ok(Value::Size(memory_of_pages(PageCount::new(k.count("pages")?), k.size("page")?)))),
            ("pages", |k| count(pages_of_memory(k.size("memory")?, k.size("page")?).map(PageCount::get), TOO_SMALL)),
        ],
    }],
    derived: &[],
    next: &[],
    examples: &["16777216", "16MiB"],
};

pub(super) static SCALE: Calculator = Calculator {
    name: "scale",
    about: "The window scale that a window needs, and what a scale allows",
    quantities: &[
        Quantity::new(
            "scale",
            "window scale",
            Kind::Count("bits"),
            "7",
            "Bits by which the window field is shifted: 0 to 14",
        )
        .or_zero(),
        Quantity::new("window", "largest window", Kind::Size, "16MiB", "Largest window that can be offered"),
        Quantity::new(
            "buffer",
            "buffer limit",
            Kind::Size,
            "6MiB",
            "Larger of tcp_rmem's third value and net.core.rmem_max",
        ),
    ],
    relations: &[
        Relation {
            formula: entry::WINDOW_SCALE,
            solve: &[
                ("scale", |k| {
                    let scale = WindowScale::for_window(k.size("window")?);
                    count(
                        scale.map(|scale| scale.get().into()),
                        "no scale is enough: TCP's largest window is 1 GiB, of 65535 bytes times 2^14",
                    )
                }),
                ("window", |k| Ok(Value::Size(window_scale(k)?.largest_window()))),
            ],
        },
        Relation {
            formula: entry::WINDOW_SCALE,
            solve: &[
                ("scale", |k| count(Some(WindowScale::of_buffer_limit(k.size("buffer")?).get().into()), TOO_SMALL)),
                ("buffer", |k| Ok(Value::Size(window_scale(k)?.buffer_limit()))),
            ],
        },
    ],
    derived: &[],
    next: &[],
    examples: &["--buffer 6MiB", "--window 16MiB", "14"],
};

fn window_scale(known: &Known) -> Result<WindowScale, String> {
    let bits = known.count("scale")?;
    u8::try_from(bits)
        .ok()
        .and_then(WindowScale::new)
        .ok_or_else(|| format!("--scale {bits}: a window scale is from 0 to 14 (RFC 7323 §2.3)"))
}
