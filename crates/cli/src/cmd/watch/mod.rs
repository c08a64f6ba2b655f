//! `linerate watch`: every TCP flow of this host, and what limits it now.

mod arguments;
mod columns;
mod detail;
mod document;
mod figures;
mod flows;
mod history;
mod http;
mod keys;
mod limit;
mod prometheus;
mod screen;
mod settings;
mod table;
#[cfg(test)]
mod tests;

use std::io;
use std::time::Duration;

use linerate_model::socket::TcpState;
use linerate_sys::full_screen::FullScreen;
use linerate_sys::poll::{self, Interest};
use linerate_sys::signals::Interrupts;
use linerate_sys::sock_diag::{SocketFilter, States};
use linerate_sys::{clock, terminal};
use linerate_units::MonotonicTime;

pub(crate) use arguments::{WatchArguments, address_prefix};

use crate::cmd::measurement;
use crate::console;
use crate::exit::Exit;
use flows::{Flows, Row};
use http::MetricsServer;
use prometheus::Metrics;
use screen::{Page, Screen, Wish};
use table::{Choice, Look};

/// Wide enough for every column, and for addresses of IPv6: where no terminal says how much there is.
const PIPE_WIDTH: usize = 160;

/// Runs the command.
pub(crate) fn run(arguments: &WatchArguments) -> Exit {
    outcome(watch(arguments))
}

fn outcome(result: Result<(), Failure>) -> Exit {
    match result {
        Ok(()) => Exit::Success,
        Err(Failure::System(cause)) => {
            console::error(&cause.to_string(), None);
            Exit::of(&cause)
        }
        Err(Failure::Ended(exit)) => exit,
    }
}

/// Why it could not go on.
enum Failure {
    System(linerate_sys::Error),
    /// The reason has been told.
    Ended(Exit),
}

impl From<linerate_sys::Error> for Failure {
    fn from(cause: linerate_sys::Error) -> Self {
        Self::System(cause)
    }
}

fn watch(arguments: &WatchArguments) -> Result<(), Failure> {
    let interrupts = measurement::interrupts().map_err(Failure::Ended)?;
    let states = if arguments.listen { States::of(&[TcpState::Listen]) } else { States::flows() };
    let filter = SocketFilter { port: arguments.port, remote: arguments.peer, ..SocketFilter::in_states(states) };
    let mut flows = Flows::new(filter)?;
    let choice = Choice { process: arguments.process.clone(), ..Choice::default() };
    let has_form = arguments.once || arguments.json || arguments.prometheus.is_some();
    if !has_form && terminal::is_terminal(&io::stdout()) {
        return full_screen(arguments, &mut flows, choice, interrupts);
    }
    let mut form = form(arguments)?;
    each_interval(arguments, &mut flows, interrupts, |flows| {
        let rows = choice.rows(flows.rows());
        form.show(arguments, flows, &rows)
    })
}

/// How intervals are shown where there is no full screen.
enum Form {
    Json,
    Metrics { metrics: Metrics, server: Option<MetricsServer> },
    Table,
}

fn form(arguments: &WatchArguments) -> Result<Form, Failure> {
    let Some(address) = arguments.prometheus else {
        return Ok(if arguments.json { Form::Json } else { Form::Table });
    };
    if arguments.once {
        return Ok(Form::Metrics { metrics: Metrics::default(), server: None });
    }
    let server = MetricsServer::start(address).map_err(|cause| {
        let cause = linerate_sys::describe_os_error(&cause);
        console::error(&format!("serving metrics at {address}: {cause}"), None);
        Failure::Ended(Exit::Unable)
    })?;
    console::note(&format!("metrics at http://{}/metrics, Ctrl-C ends", server.address));
    Ok(Form::Metrics { metrics: Metrics::default(), server: Some(server) })
}

impl Form {
    /// Shows one interval; whether somebody still looks.
    fn show(&mut self, arguments: &WatchArguments, flows: &Flows, rows: &[Row<'_>]) -> bool {
        let text = match self {
            Self::Json => match serde_json::to_string(&document::document(flows, rows)) {
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

/// The table of one interval; an empty line goes before all but the first.
fn table_text(arguments: &WatchArguments, flows: &Flows, rows: &[Row<'_>]) -> String {
    let style = console::data_style();
    let width = if terminal::is_terminal(&io::stdout()) { usize::from(style.width.get()) } else { PIPE_WIDTH };
    let look = Look { width, style, listing: arguments.listen, marks: false };
    let mut text = if flows.intervals > 1 { "\n".to_owned() } else { String::new() };
    text.push_str(&screen::summary(flows, rows, arguments.listen, style.unicode));
    text.push('\n');
    for line in table::lines(rows, &Choice::default(), &look, None) {
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Reads again and again at equal distances, and calls `show` after each interval until it says that nobody looks, as many
/// were shown as were asked for, or a signal comes.
fn each_interval(
    arguments: &WatchArguments,
    flows: &mut Flows,
    interrupts: Interrupts,
    mut show: impl FnMut(&Flows) -> bool,
) -> Result<(), Failure> {
    let count = if arguments.once { Some(1) } else { arguments.count };
    flows.update()?;
    let mut next = clock::monotonic_now();
    while count.is_none_or(|count| flows.intervals < count) {
        next = following(next, arguments.interval);
        if poll::wait_for(&interrupts, Interest::READ, Some(next.since(clock::monotonic_now())))? {
            return Ok(());
        }
        flows.update()?;
        if !show(flows) {
            return Ok(());
        }
    }
    Ok(())
}

/// The next reading's time; those that are past already are left out.
fn following(last: MonotonicTime, interval: Duration) -> MonotonicTime {
    let next = last + interval;
    let now = clock::monotonic_now();
    if next < now { now + interval } else { next }
}

fn full_screen(
    arguments: &WatchArguments,
    flows: &mut Flows,
    choice: Choice,
    interrupts: Interrupts,
) -> Result<(), Failure> {
    flows.update()?;
    let mut view = FullScreen::enter()?;
    let mut screen = Screen::new(choice, arguments.listen, arguments.interval);
    let mut next = clock::monotonic_now() + arguments.interval;
    loop {
        draw(&mut view, &mut screen, flows)?;
        let woken = view.wait(&interrupts, next.since(clock::monotonic_now()))?;
        if woken.ending {
            return Ok(());
        }
        if woken.keys {
            let keys = view.read_keys()?;
            // No keys although there should be some: the terminal is gone.
            if keys.is_empty() {
                return Ok(());
            }
            let height = view.size().1;
            for key in keys::keys(&keys) {
                match screen.press(key, flows, height) {
                    Wish::Nothing => {}
                    Wish::Quit => return Ok(()),
                    Wish::Suspend => view.suspend()?,
                }
            }
        }
        if clock::monotonic_now() >= next {
            next = following(next, arguments.interval);
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

/// Draws over what is there, line by line, so that nothing flickers.
fn draw(view: &mut FullScreen, screen: &mut Screen, flows: &Flows) -> Result<(), Failure> {
    let (width, height) = view.size();
    if let Page::Flow(key) = screen.page
        && flows.row(&key).is_none()
    {
        screen.page = Page::Table;
        screen.message = Some("this flow has ended".to_owned());
    }
    let lines = screen.picture(flows, width, height, console::data_style());
    let picture: String = lines.iter().map(|line| format!("{line}\x1b[K")).collect::<Vec<_>>().join("\r\n");
    view.write(&format!("\x1b[H{picture}\x1b[J"))?;
    Ok(())
}
