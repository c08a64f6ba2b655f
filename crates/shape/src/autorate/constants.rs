//! Constants of both laws. Those of the baseline are the defaults of cake-autorate 3.5.0 (`defaults.sh` of
//! github.com/lynxthecat/cake-autorate); the others are linerate's own, and the simulations of `tests/autorate.rs`
//! check their effect.

use core::time::Duration;

use linerate_units::ByteCount;

/// Smoothing factor of a reflector's idle delay for larger values (`alpha_baseline_increase`).
pub(super) const BASELINE_INCREASE_FACTOR: f64 = 0.001;
/// Smoothing factor of a reflector's idle delay for smaller values (`alpha_baseline_decrease`).
pub(super) const BASELINE_DECREASE_FACTOR: f64 = 0.9;
/// Smoothing factor of a reflector's mean delay above idle (`alpha_delta_ewma`).
pub(super) const DELAY_SMOOTHING: f64 = 0.095;
/// Number of samples of all reflectors in the detection window (`bufferbloat_detection_window`).
pub(super) const DETECTION_WINDOW: usize = 6;
/// Number of late samples in the window that indicate bufferbloat (`bufferbloat_detection_thr`).
pub(super) const DETECTION_COUNT: usize = 3;
/// Mean delay up to which the rate grows fastest, in seconds (`*_avg_owd_delta_max_adjust_up_thr_ms`).
pub(super) const FULL_GROWTH_DELAY: f64 = 0.010;
/// Delay beyond which a sample is late, in seconds (`*_owd_delta_delay_thr_ms`).
pub(super) const LATE_DELAY: f64 = 0.030;
/// Mean delay from which the rate falls fastest, in seconds (`*_avg_owd_delta_max_adjust_down_thr_ms`).
pub(super) const FULL_SHRINKAGE_DELAY: f64 = 0.060;
/// Rate adjustment factors under high load (`shaper_rate_max_adjust_up_load_high`, `…_min_adjust_up_load_high`).
pub(super) const GROWTH_FACTORS: (f64, f64) = (1.04, 1.00);
/// Rate adjustment factors on late samples, weakest and strongest (`shaper_rate_min_adjust_down_bufferbloat`,
/// `…_max_…`).
pub(super) const SHRINKAGE_FACTORS: (f64, f64) = (0.99, 0.75);
/// Pause after a rate decrease for late samples, in seconds (`bufferbloat_refractory_period_ms`).
pub(super) const REFRACTORY_TIME: f64 = 0.300;
/// Factors towards the base rate, down and up, and their interval in seconds (`shaper_rate_adjust_{down,up}_load_low`,
/// `decay_refractory_period_ms`).
pub(super) const DECAY_FACTORS: (f64, f64, f64) = (0.99, 1.01, 1.0);
/// Share of the set rate from which the load is high (`high_load_thr`).
pub(super) const MIN_HIGH_LOAD_SHARE: f64 = 0.75;
/// Rate in bit/s below which a direction is idle (`connection_active_thr_kbps`).
pub(super) const MIN_ACTIVE_RATE: f64 = 2_000e3;
/// Share of the set rate below which a slow link is idle; linerate's own.
pub(super) const MIN_ACTIVE_SHARE: f64 = 0.1;
/// Idle time of both directions before probing may pause, in seconds (`sustained_idle_sleep_thr_s`).
pub(super) const SUSTAINED_IDLE_TIME: f64 = 60.0;
/// Stall of the path: rate of both directions in bit/s, and number of unanswered probe intervals
/// (`connection_stall_thr_kbps`, `stall_detection_thr`).
pub(super) const STALL_RATE_AND_INTERVALS: (f64, u32) = (10e3, 5);
/// Minimum time without answers of a stall, in seconds; linerate's own, as it probes more often.
pub(super) const MIN_STALL_TIME: f64 = 0.25;
/// Interval between two probes, over all reflectors (`reflector_ping_interval_s` over `no_pingers`).
pub(super) const PROBE_INTERVAL: Duration = Duration::from_millis(50);
/// Interval of linerate's law, where probes use at most this share of the slower direction. It shows a capacity loss
/// earlier: in the lab, with both directions full, the 95th percentile of the added delay falls by 4 to 8 ms.
pub(super) const DENSE_PROBE_INTERVAL: Duration = Duration::from_millis(25);
pub(super) const MAX_PROBE_SHARE: f64 = 0.02;
/// Size of a probe on the link.
pub(super) const PROBE_SIZE: ByteCount = ByteCount::new(100);
/// Interval of reflector checks, and delay from which an answer is an offence, in seconds
/// (`reflector_health_check_interval_s`, `reflector_response_deadline_s`).
pub(super) const HEALTH_CHECK_TIME: f64 = 1.0;
/// Number of remembered checks, and of offences in them that replace a reflector
/// (`reflector_misbehaving_detection_window`, `…_thr`).
pub(super) const OFFENCE_WINDOW_AND_LIMIT: (u32, u32) = (60, 3);
/// Interval of reflector comparisons, in seconds (`reflector_comparison_interval_mins`).
pub(super) const COMPARISON_INTERVAL: f64 = 60.0;
/// Maximum excess over the best reflector: idle delay, and mean above it, in seconds
/// (`reflector_sum_owd_baselines_delta_thr_ms`, `reflector_owd_delta_ewma_delta_thr_ms`).
pub(super) const MAX_EXCESS_DELAYS: (f64, f64) = (0.020, 0.010);
/// Interval of unconditional reflector replacement, in seconds (`reflector_replacement_interval_mins`).
pub(super) const ROTATION_INTERVAL: f64 = 3600.0;

/// Target of linerate's law for the queue in the path's buffer, in seconds; one packet's time is added.
pub(super) const TARGET: f64 = 0.004;
/// Queue from which it drains that buffer, in seconds.
pub(super) const DRAIN_THRESHOLD: f64 = 0.009;
/// Intended duration of a drain, in seconds.
pub(super) const DRAIN_TIME: f64 = 0.05;
/// Minimum and maximum rate during a drain, as shares of the capacity.
pub(super) const DRAIN_SHARES: (f64, f64) = (0.25, 0.9);
/// Rate after a drain, as a share of the capacity.
pub(super) const AFTER_DRAIN_SHARE: f64 = 0.96;
/// Time between two steps in addition to the round trip that shows a step's effect, in seconds.
pub(super) const STEP_TIME: f64 = 0.08;
/// First step up, growth factor of steps, and largest step.
pub(super) const STEPS: (f64, f64, f64) = (0.025, 1.6, 0.2);
/// Step up before any limit is met, without a base rate: the rate doubles.
pub(super) const DISCOVERY_STEP: f64 = 1.0;
/// Default start rate, and minimum rate, in bit/s.
pub(super) const START_RATE: f64 = 2e6;
pub(super) const MIN_RATE: f64 = 100e3;
/// Range around the last known capacity with small steps, and its duration in seconds.
pub(super) const NEAR_CAPACITY: (f64, f64) = (1.04, 10.0);
/// Gains that reduce the rate: per second of queue above the target, and of its growth.
pub(super) const REDUCTION_GAINS: (f64, f64) = (1.0, 0.8);
/// Gains of the samples' jitter (mean difference from a sample's neighbours): for the target, for the start of a drain,
/// and, per second, for growth; and the smoothing factor of its mean, which skips samples beyond the last constant.
pub(super) const JITTER_GAINS: (f64, f64, f64) = (1.0, 1.8, 5.0);
pub(super) const JITTER_SMOOTHING: f64 = 0.02;
pub(super) const MAX_JITTER: f64 = 0.020;
/// Time after the last load during which a queue can be its own, in seconds.
pub(super) const AFTER_LOAD_TIME: f64 = 3.0;
/// Queue growth above noise, in seconds per second.
pub(super) const MIN_QUEUE_GROWTH: f64 = 0.03;
/// Minimum of one estimate, as a share of the set rate; the next sample may go further.
pub(super) const MIN_ESTIMATE_SHARE: f64 = 0.2;
/// Delay that a lower rate does not shorten, which is foreign: remaining share, after this time in seconds, or sooner
/// where the rate has fallen to a share.
pub(super) const STUCK_QUEUE_SHARE: f64 = 0.8;
pub(super) const STUCK_TIME: f64 = 2.0;
pub(super) const STUCK_AT_LOWER_RATE: (f64, f64) = (1.0, 0.75);
/// Time without load after which a delay is foreign, in seconds.
pub(super) const UNLOADED_TIME: f64 = 3.0;
/// Excess of one-way delays over the round trip that indicates a clock step, in seconds.
pub(super) const MAX_CLOCK_EXCESS: f64 = 0.002;
/// Maximum time without answers under load, in seconds.
pub(super) const BLIND_TIME: f64 = 1.5;
/// Time without answers under load after which the reflectors are at fault, in seconds.
pub(super) const REFLECTORS_DEAD_TIME: f64 = 5.0;
/// Minimum relative rate change that is applied.
pub(super) const UNNOTICED: f64 = 0.005;
/// Maximum number of queued outputs; older log lines are dropped first.
pub(super) const MAX_QUEUED_OUTPUTS: usize = 256;
/// Interval of log lines per direction without events.
pub(super) const LOG_INTERVAL: Duration = Duration::from_millis(200);
