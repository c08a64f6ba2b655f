//! Experiments of the documents that linerate implements (a guide to TCP tuning, slides on 10G TCP, a walkthrough of
//! iperf3, a traffic conditioner), reproduced on a real Linux TCP stack in virtual time.
//!
//! Bounds of each row come from a formula or from the physics of the path, never from earlier results. `cargo xtask
//! seeds` writes the same tables to docs/seeds.md.

mod cesga;
mod lartc;
mod measure;
mod rhel;
mod table;
mod walkthrough;

use table::Table;

use crate::support;

/// All tables, in the order of the documents.
const TABLES: &[fn() -> Table] = &[
    rhel::windows,
    rhel::round_trip_time,
    rhel::total_memory,
    rhel::window_scaling,
    rhel::selective_acknowledgement,
    cesga::clean_path,
    cesga::congestion_controls,
    || cesga::mathis_formula(&cesga::LOSS_RATES),
    cesga::frame_size,
    cesga::timestamps,
    cesga::ten_gigabits,
    walkthrough::frozen_window,
    || walkthrough::window_sweep(&walkthrough::WINDOWS),
    lartc::unshaped,
    lartc::shaped,
    lartc::both,
];

/// One test for each table. Tables and rows with gigabytes of data are verified by `cargo xtask seeds` only.
macro_rules! reproduced {
    ($($name:ident: $table:expr;)*) => {
        $(#[test] fn $name() { ($table)().verify(); })*
    };
}

reproduced! {
    rhel_windows: rhel::windows;
    rhel_round_trip_time: rhel::round_trip_time;
    rhel_window_scaling: rhel::window_scaling;
    rhel_selective_acknowledgement: rhel::selective_acknowledgement;
    cesga_clean_path: cesga::clean_path;
    cesga_mathis: || cesga::mathis_formula(&cesga::LOSS_RATES[3..]);
    walkthrough_frozen_window: walkthrough::frozen_window;
    walkthrough_window_sweep: || walkthrough::window_sweep(&[64.0, 192.0]);
    lartc_unshaped: lartc::unshaped;
    lartc_shaped: lartc::shaped;
    lartc_both: lartc::both;
}

/// Writes all tables to the file in `LINERATE_SEEDS`. Outputs of commands are kept until then.
#[test]
#[ignore = "long: cargo xtask seeds"]
fn publish() {
    let file = std::env::var("LINERATE_SEEDS").expect("LINERATE_SEEDS names the file");
    let tables: Vec<Table> = support::lab::in_parallel(TABLES, |table| table());
    std::fs::write(&file, table::document(&tables)).expect("the file can be written");
    std::fs::remove_dir_all(measure::kept()).expect("the outputs were kept");
    tables.iter().for_each(Table::verify);
}
