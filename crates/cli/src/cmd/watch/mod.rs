//! `linerate watch`: every TCP flow of this host, and its present limit.

mod arguments;
mod columns;
mod detail;
mod document;
mod events;
mod figures;
mod flows;
mod history;
mod limit;
mod metrics_server;
mod prometheus;
mod screen;
mod settings;
mod table;
#[cfg(test)]
mod tests;

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use linerate_model::socket::TcpState;
use linerate_report::text::wrap_text;
use linerate_sys::full_screen::{ControlKeys, FullScreen};
use linerate_sys::poll::{self, PollInterest};
use linerate_sys::signals::InterruptSignals;
use linerate_sys::sock_diag::{SocketFilter, SocketStates};
use linerate_sys::{clock, terminal};
use linerate_units::MonotonicTime;

pub(crate) use arguments::{WatchArguments, address_prefix};

use linerate_documents::label::{DocumentKind, LabelledDocument};
use linerate_documents::progress::EventKind;

use crate::cmd::measurement;
use crate::console;
use crate::exit::ExitStatus;
use crate::keys::parse_keys;
use crate::progress;
use flows::{FlowRow, FlowTable};
use metrics_server::MetricsServer;
use prometheus::PrometheusMetrics;
use screen::{KeyAction, ScreenPage, WatchScreen};
use table::{RowSelection, ViewStyle};

/// Width of a table outside a terminal: enough for every column, and for IPv6 addresses.
const PIPE_WIDTH: usize = 1000;

/// Runs the command.
pub(crate) fn run(arguments: &WatchArguments) -> ExitStatus {
    exit_status(watch(arguments))
}

fn exit_status(result: Result<(), WatchFailure>) -> ExitStatus {
    match result {
        Ok(()) => ExitStatus::Success,
        Err(WatchFailure::System(cause)) => {
            console::error(&cause.to_string(), None);
            ExitStatus::from_error(&cause)
        }
        Err(WatchFailure::Ended(exit)) => exit,
    }
}

/// Reason for an early end.
enum WatchFailure {
    System(linerate_sys::Error),
    /// Exit status; the error has been reported.
    Ended(ExitStatus),
}

impl From<linerate_sys::Error> for WatchFailure {
    fn from(cause: linerate_sys::Error) -> Self {
        Self::System(cause)
    }
}

fn watch(arguments: &WatchArguments) -> Result<(), WatchFailure> {
    let interrupts = measurement::interrupts().map_err(WatchFailure::Ended)?;
    let states = if arguments.listen { SocketStates::of(&[TcpState::Listen]) } else { SocketStates::flows() };
    let filter = SocketFilter { port: arguments.port, remote: arguments.peer, ..SocketFilter::in_states(states) };
    let mut flows = FlowTable::new(filter)?;
    if arguments.kernel_events {
        flows.trace_kernel_events();
    }
    let choice = RowSelection { process: arguments.process.clone(), ..RowSelection::default() };
    let has_form = arguments.once || arguments.json || arguments.prometheus.is_some();
    if !has_form && terminal::is_terminal(&io::stdout()) {
        return full_screen(arguments, &mut flows, choice, interrupts);
    }
    let mut form = watch_output(arguments)?;
    each_interval(arguments, &mut flows, interrupts, |flows| {
        let rows = choice.rows(flows.rows());
        form.show(arguments, flows, &rows)
    })
}

/// Output of intervals without a full screen.
enum WatchOutput {
    Json,
    Metrics { metrics: PrometheusMetrics, server: Option<MetricsServer> },
    Table,
}

fn watch_output(arguments: &WatchArguments) -> Result<WatchOutput, WatchFailure> {
    let Some(address) = arguments.prometheus else {
        return Ok(if arguments.json { WatchOutput::Json } else { WatchOutput::Table });
    };
    if arguments.once {
        return Ok(WatchOutput::Metrics { metrics: PrometheusMetrics::default(), server: None });
    }
    let server = MetricsServer::start(address).map_err(|cause| {
        let cause = linerate_sys::describe_os_error(&cause);
        console::error(&format!("serving metrics at {address}: {cause}"), None);
        WatchFailure::Ended(ExitStatus::Unable)
    })?;
    console::note(&format!("metrics at http://{}/metrics; Ctrl-C stops the server", server.address));
    Ok(WatchOutput::Metrics { metrics: PrometheusMetrics::default(), server: Some(server) })
}

impl WatchOutput {
    /// Outputs one interval; returns false when its reader is gone.
    fn show(&mut self, arguments: &WatchArguments, flows: &FlowTable, rows: &[FlowRow<'_>]) -> bool {
        let text = match self {
            Self::Json if progress::is_streamed() => {
                let document = document::document(flows, rows);
                let document = LabelledDocument::new(DocumentKind::Watch, &document);
                return measurement::publish_document(EventKind::Interval, &document);
            }
            Self::Json => match serde_json::to_string(&LabelledDocument::new(
                DocumentKind::Watch,
                &document::document(flows, rows),
            )) {
                Ok(text) => format!("{text}\n"),
                Err(cause) => {
                    console::error(&format!("writing the flows as JSON: {cause}"), None);
                    return false;
                }
            },
            Self::Metrics { metrics, server } => {
                metrics.count(flows);
                let text = metrics.text(rows, usize::try_from(arguments.top).unwrap_or(usize::MAX));
                if let Some(server) = server {
                    server.publish(text);
                    return true;
                }
                text
            }
            Self::Table => table_text(arguments, flows, rows),
        };
        console::relay_data(text.as_bytes())
    }
}

/// Table of one interval; an empty line precedes all but the first.
fn table_text(arguments: &WatchArguments, flows: &FlowTable, rows: &[FlowRow<'_>]) -> String {
    let style = console::data_style();
    let width = if terminal::is_terminal(&io::stdout()) { usize::from(style.width.get()) } else { PIPE_WIDTH };
    let look = ViewStyle { width, style, listing: arguments.listen, marks: false };
    let mut text = if flows.intervals > 1 { "\n".to_owned() } else { String::new() };
    text.push_str(&screen::summary(flows, rows, arguments.listen, style.unicode));
    text.push('\n');
    for line in flows.events.iter().flat_map(|events| wrap_text(&events.host_line(), width)) {
        text.push_str(&line);
        text.push('\n');
    }
    for line in table::lines(rows, &RowSelection::default(), &look, None) {
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Samples at equal intervals, and calls `show` after each until it returns false, the requested number is shown, or a
/// signal arrives.
fn each_interval(
    arguments: &WatchArguments,
    flows: &mut FlowTable,
    interrupts: InterruptSignals,
    mut show: impl FnMut(&FlowTable) -> bool,
) -> Result<(), WatchFailure> {
    let count = if arguments.once { Some(1) } else { arguments.count };
    flows.update()?;
    let mut next = clock::monotonic_now();
    while count.is_none_or(|count| flows.intervals < count) {
        next = next_sample_time(next, arguments.interval);
        if poll::wait_for(&interrupts, PollInterest::READ, Some(next.since(clock::monotonic_now())))? {
            return Ok(());
        }
        flows.update()?;
        if !show(flows) {
            return Ok(());
        }
    }
    Ok(())
}

/// Time of the next sample; times in the past are skipped.
fn next_sample_time(last: MonotonicTime, interval: Duration) -> MonotonicTime {
    let next = last + interval;
    let now = clock::monotonic_now();
    if next < now { now + interval } else { next }
}

fn full_screen(
    arguments: &WatchArguments,
    flows: &mut FlowTable,
    choice: RowSelection,
    interrupts: InterruptSignals,
) -> Result<(), WatchFailure> {
    flows.update()?;
    let mut view = FullScreen::enter(ControlKeys::Keys)?;
    let mut screen = WatchScreen::new(choice, arguments.listen, arguments.interval);
    let mut next = clock::monotonic_now() + arguments.interval;
    loop {
        draw(&mut view, &mut screen, flows)?;
        let woken = view.wait(&[interrupts.as_fd()], next.since(clock::monotonic_now()))?;
        if woken.ending {
            return Ok(());
        }
        if woken.keys {
            let keys = view.read_keys()?;
            // No keys although some are due: the terminal is gone.
            if keys.is_empty() {
                return Ok(());
            }
            let height = view.size().1;
            for key in parse_keys(&keys) {
                match screen.handle_key(key, flows, height) {
                    KeyAction::Nothing => {}
                    KeyAction::Quit => return Ok(()),
                    KeyAction::Suspend => view.suspend(),
                }
            }
        }
        if clock::monotonic_now() >= next {
            next = next_sample_time(next, arguments.interval);
            if !screen.frozen {
                flows.update()?;
                if arguments.count.is_some_and(|count| flows.intervals >= count) {
                    draw(&mut view, &mut screen, flows)?;
                    return Ok(());
                }
            }
        }
    }
}

/// Redraws line by line, without flicker.
fn draw(view: &mut FullScreen, screen: &mut WatchScreen, flows: &FlowTable) -> Result<(), WatchFailure> {
    let (width, height) = view.size();
    if let ScreenPage::Flow(key) = screen.page
        && flows.row(&key).is_none()
    {
        screen.page = ScreenPage::Table;
        screen.message = Some("this flow has ended".to_owned());
    }
    let lines = screen.picture(flows, width, height, console::data_style());
    let picture: String = lines.iter().map(|line| format!("{line}\x1b[K")).collect::<Vec<_>>().join("\r\n");
    view.write(&format!("\x1b[H{picture}\x1b[J"))?;
    Ok(())
}
