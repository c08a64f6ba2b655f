//! Tests of the picture, drawn into memory.

use std::time::Duration;

use linerate_documents::progress::{EventKind, ProgressEvent};
use linerate_model::limit::LimitShares;
use linerate_report::throughput_text::{TerminalWidth, TextStyle};
use linerate_units::Ratio;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::style::Color;

use super::draw;
use super::state::LivePicture;

/// The middle of a load test: an idle path of 20 ms, then a full download, then an upload for three seconds.
fn load() -> LivePicture {
    let mut picture = LivePicture::new("linerate load far.example, port 5201", &["idle", "down", "up", "both"]);
    let mut clock = 0;
    let mut apply = |picture: &mut LivePicture, milliseconds: u64, event: ProgressEvent| {
        clock += milliseconds;
        picture.apply(&ProgressEvent { at_ns: clock * 1_000_000, ..event });
    };
    let sample = |rtt: u64| ProgressEvent { rtt_ns: Some(rtt * 1_000_000), ..ProgressEvent::new(EventKind::Sample) };
    apply(&mut picture, 0, ProgressEvent::phase("idle", Some(6_000_000_000)));
    (0..60).for_each(|_| apply(&mut picture, 100, sample(20)));
    apply(&mut picture, 0, ProgressEvent::phase("down", None));
    let down = |rtt| ProgressEvent { down_bits_per_second: Some(94.1e6), ..sample(rtt) };
    (0..100).for_each(|step| apply(&mut picture, 100, down(20 + step / 4)));
    apply(&mut picture, 0, ProgressEvent::phase("up", None));
    apply(&mut picture, 0, ProgressEvent::phase("up", Some(10_000_000_000)));
    let limits = LimitShares { network: Ratio::of(0.97, 1.0).expect("finite"), ..LimitShares::default() };
    let up = ProgressEvent { up_bits_per_second: Some(9.4e6), limits: Some(limits), ..sample(152) };
    (0..30).for_each(|_| apply(&mut picture, 100, up.clone()));
    apply(&mut picture, 0, ProgressEvent::with_text(EventKind::Note, "the probe interval of each class is 385 ms"));
    picture
}

fn drawn(picture: &LivePicture, (width, height): (u16, u16), colour: bool, unicode: bool) -> Buffer {
    let style = TextStyle { width: TerminalWidth::new(width), colour, unicode };
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("memory");
    terminal.draw(|frame| draw::draw(frame, picture, style)).expect("memory");
    terminal.backend().buffer().clone()
}

fn lines(buffer: &Buffer) -> Vec<String> {
    let row = |cells: &[ratatui::buffer::Cell]| cells.iter().map(ratatui::buffer::Cell::symbol).collect::<String>();
    buffer.content.chunks(usize::from(buffer.area.width)).map(row).collect()
}

/// Rows in which a curve is drawn, between two lines of text.
fn rows_with_curve(lines: &[String], from: &str, to: &str) -> usize {
    let start = lines.iter().position(|line| line.starts_with(from)).expect("title");
    let end = lines.iter().position(|line| line.starts_with(to)).expect("title");
    let is_mark = |character: char| ('\u{2801}'..='\u{28ff}').contains(&character) || "•*o".contains(character);
    lines[start + 1..end].iter().filter(|line| line.chars().any(is_mark)).count()
}

#[test]
fn the_picture_has_its_parts_at_every_size() {
    for (size, unicode) in [(120, 30), (80, 24), (60, 16)].into_iter().flat_map(|size| [(size, true), (size, false)]) {
        let lines = lines(&drawn(&load(), size, true, unicode));
        let text = lines.join("\n");
        assert!(lines[0].starts_with("linerate load far.example, port 5201") && lines[0].ends_with("0:19"), "{text}");
        for part in ["7 s left", "9.40 Mbit/s", "RTT 152 ms, 132 ms more than idle", "q: stop"] {
            assert!(text.contains(part), "{size:?} {part}:\n{text}");
        }
        let limit = "LIMITED BY  the path, 97 % of the time: its queue adds 132 ms";
        assert!(lines.iter().any(|line| line.starts_with(limit) || line.starts_with(&limit[..59])), "{text}");
        assert!(lines.iter().any(|line| line.starts_with("note: the probe interval")), "{text}");
        assert!(rows_with_curve(&lines, "Goodput", "Delay") >= 1, "{text}");
        assert!(rows_with_curve(&lines, "Delay", "LIMITED BY") >= 2, "{text}");
        assert_eq!(text.is_ascii(), !unicode, "{text}");
    }
}

#[test]
fn phases_show_what_is_done_and_what_follows() {
    let wide = lines(&drawn(&load(), (120, 30), true, true)).join("\n");
    for row in ["✓ idle", "✓ down", "▶ up", "· both", "RTT 20.0 ms", "↓ 94.1 Mbit/s"] {
        assert!(wide.contains(row), "{row}:\n{wide}");
    }
    let narrow = lines(&drawn(&load(), (60, 16), true, true));
    assert!(narrow[1].starts_with("✓ idle   ✓ down   ▶ up   · both"), "{narrow:#?}");
    let mut many = load();
    for name in ["one phase of many", "another phase of many", "the last phase of many"] {
        many.phases.push(super::state::LivePhase { name: name.to_owned(), ..Default::default() });
    }
    let narrow = lines(&drawn(&many, (60, 16), true, true));
    assert!(narrow[1].starts_with("✓ 2   ▶ up   · both   · one phase of many   · another phase…"), "{narrow:#?}");
}

#[test]
fn without_colours_the_curves_have_different_marks() {
    let buffer = drawn(&load(), (80, 24), false, true);
    assert!(buffer.content.iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
    let goodput: String = lines(&buffer).into_iter().skip_while(|line| !line.starts_with("Goodput")).take(8).collect();
    assert!(goodput.contains("⠤ ↓ down") && goodput.contains("• ↑ up"), "{goodput}");
    let coloured = drawn(&load(), (80, 24), true, true);
    assert!(coloured.content.iter().any(|cell| cell.fg == Color::Cyan));
}

#[test]
fn a_terminal_that_became_small_shows_lines() {
    let lines = lines(&drawn(&load(), (20, 6), true, true));
    assert_eq!(lines[1], "up  7 s left        ");
    assert!(lines[2].starts_with("↑ 9.40 Mbit/s"), "{lines:#?}");
    assert!(lines[3].starts_with("RTT 152 ms"), "{lines:#?}");
    for size in [(1, 1), (3, 40), (200, 1), (39, 12), (40, 11), (40, 12), (65, 9)] {
        drawn(&load(), size, true, true);
        drawn(&LivePicture::new("nothing yet", &[]), size, false, false);
    }
}

#[test]
fn a_stopping_measurement_says_so() {
    let mut picture = load();
    picture.is_stopping = true;
    picture.now = Duration::from_secs(75);
    let lines = lines(&drawn(&picture, (60, 16), true, true));
    assert!(lines[0].ends_with("1:15") && lines[15].starts_with("stopping: the results follow"), "{lines:#?}");
}
