//! The numbers of both laws. Those of the baseline are the defaults of cake-autorate 3.5.0 (`defaults.sh` of
//! github.com/lynxthecat/cake-autorate); the others are linerate's own, and the simulations of `tests/autorate.rs` hold
//! what they are chosen for.

use core::time::Duration;

use linerate_units::ByteCount;

/// How fast a reflector's delay at rest follows larger values (`alpha_baseline_increase`).
pub(super) const BASE_UP: f64 = 0.001;
/// … and smaller ones (`alpha_baseline_decrease`).
pub(super) const BASE_DOWN: f64 = 0.9;
/// How fast a reflector's mean delay above rest follows (`alpha_delta_ewma`).
pub(super) const DELTA_AVERAGE: f64 = 0.095;
/// Samples of all reflectors that are looked at together (`bufferbloat_detection_window`).
pub(super) const DETECTION_WINDOW: usize = 6;
/// … how many of them must be late (`bufferbloat_detection_thr`).
pub(super) const DETECTION_COUNT: usize = 3;
/// A mean delay at or below which the rate grows fastest, in seconds (`*_avg_owd_delta_max_adjust_up_thr_ms`).
pub(super) const GROW_FULLY: f64 = 0.010;
/// A sample is late beyond this, in seconds (`*_owd_delta_delay_thr_ms`).
pub(super) const LATE: f64 = 0.030;
/// A mean delay from which the rate falls fastest, in seconds (`*_avg_owd_delta_max_adjust_down_thr_ms`).
pub(super) const SHRINK_FULLY: f64 = 0.060;
/// Rate adjustments under high load (`shaper_rate_max_adjust_up_load_high`, `…_min_adjust_up_load_high`).
pub(super) const GROWTH: (f64, f64) = (1.04, 1.00);
/// Rate adjustments on late samples, least and most (`shaper_rate_min_adjust_down_bufferbloat`, `…_max_…`).
pub(super) const SHRINKAGE: (f64, f64) = (0.99, 0.75);
/// Pause after a rate fell for late samples, in seconds (`bufferbloat_refractory_period_ms`).
pub(super) const REFRACTORY: f64 = 0.300;
/// Towards the base rate, down and up, and how often in seconds (`shaper_rate_adjust_{down,up}_load_low`,
/// `decay_refractory_period_ms`).
pub(super) const DECAY: (f64, f64, f64) = (0.99, 1.01, 1.0);
/// The share of the set rate from which the load is high (`high_load_thr`).
pub(super) const HIGH_LOAD: f64 = 0.75;
/// Below this rate, in bit/s, a direction is idle (`connection_active_thr_kbps`).
pub(super) const ACTIVE: f64 = 2_000e3;
/// The same on slow lines, of the set rate; linerate's own.
pub(super) const ACTIVE_SHARE: f64 = 0.1;
/// How long both must be idle before probing may pause, in seconds (`sustained_idle_sleep_thr_s`).
pub(super) const SUSTAINED_IDLE: f64 = 60.0;
/// Below this rate both ways, in bit/s, and without answers for so many intervals of probes, the path stalls
/// (`connection_stall_thr_kbps`, `stall_detection_thr`).
pub(super) const STALL: (f64, u32) = (10e3, 5);
/// … and for so long at least, in seconds; linerate's own, as it probes more often.
pub(super) const STALL_LEAST: f64 = 0.25;
/// Time between two probes of whichever reflectors (`reflector_ping_interval_s` over `no_pingers`).
pub(super) const SPACING: Duration = Duration::from_millis(50);
/// linerate's own, where probes take no more than this share of the slower direction. What the capacity has lost shows so much
/// earlier: in the lab, with both directions full, the 95th percentile of the delay added falls by 4 to 8 ms.
pub(super) const DENSE_SPACING: Duration = Duration::from_millis(25);
pub(super) const PROBES_SHARE: f64 = 0.02;
/// What a probe takes on the line.
pub(super) const PROBE: ByteCount = ByteCount::new(100);
/// How often reflectors are looked at, and how late an answer is an offence, in seconds
/// (`reflector_health_check_interval_s`, `reflector_response_deadline_s`).
pub(super) const HEALTH: f64 = 1.0;
/// Looks that are remembered, and offences in them that have a reflector replaced
/// (`reflector_misbehaving_detection_window`, `…_thr`).
pub(super) const OFFENCES: (u32, u32) = (60, 3);
/// How often reflectors are compared, in seconds (`reflector_comparison_interval_mins`).
pub(super) const COMPARISON: f64 = 60.0;
/// How much worse than the best one may be: delay at rest, mean above it; seconds (`reflector_sum_owd_baselines_delta_thr_ms`,
/// `reflector_owd_delta_ewma_delta_thr_ms`).
pub(super) const WORSE: (f64, f64) = (0.020, 0.010);
/// How often one reflector is replaced whatever it does, in seconds (`reflector_replacement_interval_mins`).
pub(super) const ROTATION: f64 = 3600.0;

/// The queue in the path's own buffer that linerate's law aims below, in seconds; one packet's time is added to it.
pub(super) const TARGET: f64 = 0.004;
/// The queue from which it drains that buffer.
pub(super) const DRAIN_FROM: f64 = 0.009;
/// In what time it means to have drained it, in seconds.
pub(super) const DRAIN_TIME: f64 = 0.05;
/// The least and the most it sets meanwhile, of the capacity.
pub(super) const DRAIN_SHARES: (f64, f64) = (0.25, 0.9);
/// What it sets when the buffer is empty again, of the capacity.
pub(super) const AFTER_DRAIN: f64 = 0.96;
/// Time between two steps, in seconds, beside the round trip that shows what the last one did.
pub(super) const STEP_TIME: f64 = 0.08;
/// The first step up, by how much steps grow, and the largest.
pub(super) const STEPS: (f64, f64, f64) = (0.025, 1.6, 0.2);
/// The step up while no limit has been met yet and no base rate is given: the rate doubles.
pub(super) const DISCOVERY: f64 = 1.0;
/// Where it starts when nothing is given, and below which it never goes, in bit/s.
pub(super) const FIRST_RATE: f64 = 2e6;
pub(super) const LOWEST_RATE: f64 = 100e3;
/// Up to this much above the last known capacity steps stay small, for this long, in seconds.
pub(super) const NEAR: (f64, f64) = (1.04, 10.0);
/// How much of a queue above the target is taken off the rate per second of it, and of its growth.
pub(super) const LEAN: (f64, f64) = (1.0, 0.8);
/// How much of the samples' jitter (the mean difference from a sample's neighbours) is added to the target, to where draining
/// begins, and, per second, to what counts as growth; and how fast its mean follows, samples beyond so many seconds left out.
pub(super) const JITTER: (f64, f64, f64) = (1.0, 1.8, 5.0);
pub(super) const JITTER_AVERAGE: f64 = 0.02;
pub(super) const JITTER_MOST: f64 = 0.020;
/// How long after the last load a queue can still be its, in seconds.
pub(super) const AFTER_LOAD: f64 = 3.0;
/// A growth of the queue, seconds per second, that noise does not make.
pub(super) const GROWING: f64 = 0.03;
/// One estimate may not be below this share of the rate that is set: the next sample may go further.
pub(super) const ONE_FALL: f64 = 0.2;
/// A delay that a lower rate did not shorten is no queue of ours: so much of it is left after so many seconds, or after
/// fewer where the rate has fallen to this share.
pub(super) const STUCK_LEFT: f64 = 0.8;
pub(super) const STUCK_TIME: f64 = 2.0;
pub(super) const STUCK_SOON: (f64, f64) = (1.0, 0.75);
/// A delay under no load for this long, in seconds, is none either.
pub(super) const UNLOADED: f64 = 3.0;
/// How far one-way delays may go beyond the round trip's before a clock is taken to have moved, in seconds.
pub(super) const CLOCK_SLACK: f64 = 0.002;
/// How long no answer may come while there is load, in seconds.
pub(super) const BLIND: f64 = 1.5;
/// … until it is the reflectors that are to blame and not the path, in seconds.
pub(super) const ALL_DEAD: f64 = 5.0;
/// A change of the rate that is not worth a word to the kernel.
pub(super) const UNNOTICED: f64 = 0.005;
/// Outputs that wait at most: older lines of the log are given up first.
pub(super) const LONGEST_QUEUE: usize = 256;
/// Time between two lines of the log in one direction when nothing happens.
pub(super) const LOG_TIME: Duration = Duration::from_millis(200);
