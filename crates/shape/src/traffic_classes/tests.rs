//! Reading of classes, their limits and sums.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::net::Ipv4Addr;

use linerate_model::direction::Direction;
use linerate_units::BitRate;
use proptest::prelude::*;

use super::*;
use crate::verify::PerDirection;

const GOOD: &str = "\u{feff}# customers of the tower\nmatch, name, group, down, up\n\
                    group,ACME,,100M:200M,20M\r\n192.0.2.7 2001:db8:7::/64,office,ACME,40M:200M,10M:20M\n\n\
                    mark/0x10,voice,,2M,2M\ndscp/ef,,,1M,\n";

fn megabits(rate: f64) -> BitRate {
    BitRate::from_bits_per_second(rate * 1e6)
}

fn link(down: f64, up: f64) -> PerDirection<Option<BitRate>> {
    PerDirection { up: Some(megabits(up)), down: Some(megabits(down)) }
}

#[test]
fn a_file_has_groups_addresses_marks_and_codepoints() {
    let classes = parse_class_file(GOOD).expect("good");
    let titles: Vec<String> = classes.list().iter().map(TrafficClass::title).collect();
    assert_eq!(titles, ["ACME", "office", "voice", "dscp/46"]);
    let office = &classes.list()[1];
    assert_eq!((office.group, office.selectors.len(), office.origin.as_str()), (Some(0), 2, "line 4"));
    let up = office.rates.up.expect("given");
    assert_eq!((up.guaranteed, up.ceiling), (megabits(10.0), megabits(20.0)));
    assert_eq!(classes.list()[3].rates.up, None);
    assert!(classes.has_marks(Direction::Up));
    assert!(office.selectors.iter().any(|selector| matches!(selector, ClassSelector::Address(_))), "{office:?}");
    assert_eq!(classes.check_sums(link(103.0, 22.0)), Ok(()));
    let error = classes.check_sums(link(102.0, 22.0)).expect_err("too much");
    assert_eq!(
        error,
        "the 3 classes below the link have 103 Mbit/s down guaranteed together, more than its 102 Mbit/s"
    );
}

#[test]
fn faults_are_named_with_their_lines() {
    for (rows, error) in [
        ("192.0.2.7,a,,1M,\n192.0.2.7,b,,1M,", "line 3: 192.0.2.7 is in line 2 already"),
        ("192.0.2.0/24,a,,1M,\n192.0.2.7,b,,1M,", "line 3: 192.0.2.7 overlaps 192.0.2.0/24 of line 2 already"),
        ("192.0.2.7,a,,1M,\n192.0.0.0/16,b,,1M,", "line 3: 192.0.0.0/16 overlaps 192.0.2.7 of line 2 already"),
        ("::/0,a,,1M,\n2001:db8::/32,b,,1M,", "line 3: 2001:db8::/32 overlaps ::/0 of line 2 already"),
        ("192.0.2.7 192.0.2.0/24,a,,1M,", "line 2: 192.0.2.0/24 is in it twice"),
        ("mark/16,a,,1M,\nmark/0x10,b,,1M,", "line 3: mark/0x10 is in line 2 already"),
        ("192.0.2.7,a,,1M,\n192.0.2.8,a,,1M,", "line 3: the name 'a' is that of line 2, too"),
        ("192.0.2.7,a,x,1M,", "line 2: no line above defines the group 'x' (a line with the match 'group' does)"),
        (
            "192.0.2.7,a,,1M,\n192.0.2.8,b,a,1M,",
            "line 3: no line above defines the group 'a' (a line with the match 'group' does)",
        ),
        ("group,x,,1M,\n192.0.2.7,a,x,1M,1M", "line 3: it has a rate up, and its group 'x' has none"),
        ("192.0.2.7,a,,,", "line 2: it has no rate; give its rate down, up or both"),
        ("192.0.2.7,a,,2M:1M,", "line 2: the ceiling 1.00 Mbit/s is below the guaranteed rate 2.00 Mbit/s"),
        ("192.0.2.7,a,,1,", "line 2: the rate 1 is outside of 1 kbit/s to 1 Tbit/s"),
        ("192.0.2.7,a,,1M", "line 2: it has 4 cells, and the header has 5"),
        ("\"192.0.2.7\",a,,1M,", "line 2: it has a quotation mark, which no cell needs"),
        (",a,,1M,", "line 2: its match is empty (expected a selector, or 'group')"),
        ("group,,,1M,", "line 2: a group needs a name"),
        ("mark/0,a,,1M,", "line 2: invalid mark '0' (expected 1 to 4294967295, or 0x1 to 0xffffffff)"),
        (
            &format!("192.0.2.7,{},,1M,\n192.0.2.8,a,,1M,\n192.0.2.8,b,,1M,", "a".repeat(4096)),
            "line 2: it is longer than 4096 bytes\nline 4: 192.0.2.8 is in line 3 already",
        ),
        ("", "it has no classes"),
    ] {
        let text = format!("match,name,group,down,up\n{rows}\n");
        assert_eq!(parse_class_file(&text), Err(error.to_owned()), "{rows}");
    }
    for (header, error) in [
        ("match,rate", "line 1: unknown column 'rate' (expected the header match,name,group,down,up)"),
        ("match,name", "line 1: a column is missing (expected the header match,name,group,down,up)"),
        ("match,up,up", "line 1: the column 'up' is there twice (expected the header match,name,group,down,up)"),
    ] {
        assert_eq!(parse_class_file(header), Err(error.to_owned()));
    }
}

#[test]
fn a_million_rows_end_at_the_limit() {
    let mut reader = ClassFileReader::default();
    assert!(reader.line("match,down"));
    let taken = (0..1_000_000_u32).take_while(|row| reader.line(&format!("{},1k", Ipv4Addr::from(0x0a00_0000 + row))));
    assert_eq!(taken.count(), MAX_CLASSES);
    let error = reader.finish().expect_err("too many");
    assert_eq!(error, "line 16002: more than 16000 classes; split them between several interfaces");
    let mut reader = ClassFileReader::default();
    assert!(reader.line("match,down"));
    assert_eq!((0..1_000_000).take_while(|_| reader.line("10.0.0.1,1k")).count(), MAX_FILE_ERRORS);
    let error = reader.finish().expect_err("duplicates");
    assert_eq!(error.lines().count(), MAX_FILE_ERRORS + 1, "{error}");
    assert!(error.starts_with("line 3: 10.0.0.1 is in line 2 already\n"), "{error}");
}

#[test]
fn groups_nest_to_a_limit() {
    let mut text = "match,name,group,down\ngroup,g0,,1M\n".to_owned();
    for depth in 1..MAX_GROUP_DEPTH {
        let _ = writeln!(text, "group,g{depth},g{},1M", depth - 1);
    }
    let deepest = MAX_GROUP_DEPTH - 1;
    assert!(parse_class_file(&format!("{text}10.0.0.1,a,g{deepest},1M\n")).is_ok());
    let deeper = format!("{text}group,more,g{deepest},1M\n10.0.0.1,a,more,1M\n");
    assert_eq!(parse_class_file(&deeper), Err("line 7: it is below more than 4 groups".to_owned()));
}

#[test]
fn classes_of_the_command_line() {
    let class = parse_class("192.0.2.7+2001:db8::7=10M").expect("good");
    assert_eq!((class.selectors.len(), class.rates.up, class.rates.down.is_some()), (2, class.rates.down, true));
    let class = parse_class("192.0.2.0/24=20M:50M,5M").expect("good");
    assert_eq!(class.rates.down.map(|rates| rates.ceiling), Some(megabits(50.0)));
    assert_eq!(class.rates.up.map(|rates| rates.ceiling), Some(megabits(5.0)));
    for wrong in [
        "192.0.2.7",
        "=1M",
        "192.0.2.7=",
        "192.0.2.7=1M,1M,1M",
        "192.0.2.7/24=1M",
        "host=1M",
        "mark/x=1M",
        "dscp/64=1M",
    ] {
        assert!(parse_class(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn rates_above_the_links_are_scaled() {
    let text = "match,name,group,down\ngroup,x,,60M\n10.0.0.1,,x,60M:80M\n10.0.0.2,,x,60M\n10.0.0.3,,,40M\n";
    let mut classes = parse_class_file(text).expect("good");
    let error = classes.check_sums(link(100.0, 1.0)).expect_err("too much");
    assert_eq!(
        error,
        "the 2 classes below the group 'x' (line 2) have 120 Mbit/s down guaranteed together, more than its 60.0 Mbit/s"
    );
    classes.oversubscribes = true;
    assert_eq!(classes.check_sums(link(50.0, 1.0)), Ok(()));
    let scaled = classes.scaled(Direction::Down, megabits(50.0));
    let guaranteed: Vec<f64> =
        scaled.iter().map(|rates| rates.expect("down").guaranteed.bits_per_second().round()).collect();
    assert_eq!(guaranteed, [30e6, 15e6, 15e6, 20e6]);
    assert_eq!(scaled[1].map(|rates| rates.ceiling), Some(megabits(80.0)));
    assert_eq!(classes.scaled(Direction::Up, megabits(1.0)), [None; 4]);
}

proptest! {
    /// Two prefixes are refused exactly when they have an address in common.
    #[test]
    fn overlaps_are_those_of_addresses(addresses in prop::collection::vec((0_u8..16, 28_u8..=32), 1..8)) {
        let mut classes = TrafficClasses::default();
        let mut taken = BTreeSet::new();
        for (last, length) in addresses {
            let size = 1_u8 << (32 - length);
            let first = last / size * size;
            let class = parse_class(&format!("10.0.0.{first}/{length}=1M")).expect("good");
            let members = first..first + size;
            let is_free = members.clone().all(|one| !taken.contains(&one));
            prop_assert_eq!(classes.add(class).is_ok(), is_free);
            if is_free {
                taken.extend(members);
            }
        }
    }

    #[test]
    fn any_text_is_a_list_or_an_error(text in "(match,name,group,down,up\n)?[ -~\n]{0,200}") {
        if let Ok(classes) = parse_class_file(&text) {
            prop_assert!(!classes.is_empty());
        }
    }
}
