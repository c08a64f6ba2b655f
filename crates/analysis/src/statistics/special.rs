//! Distribution functions for confidence intervals: normal, Student's t, beta.
//!
//! Formulas: Abramowitz and Stegun 1964, 7.1.5 and 7.1.14 (error function), 26.5.8 (incomplete beta), 26.7.1 (Student's
//! t); Lanczos 1964 (gamma function). Quantiles are found by bisection, as accurate as the functions themselves.

use core::f64::consts::{PI, SQRT_2};

/// Number of bisection steps: enough for a double's precision.
const BISECTION_STEPS: usize = 200;

/// Logarithm of the gamma function for a positive argument (Lanczos's series with g = 7, nine terms).
fn ln_gamma(x: f64) -> f64 {
    const SERIES: [f64; 9] = [
        0.999_999_999_999_809_9,
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    if x < 0.5 {
        return (PI / (PI * x).sin()).ln() - ln_gamma(1.0 - x);
    }
    let x = x - 1.0;
    let base = x + 7.5;
    let (mut sum, mut divisor) = (SERIES[0], x);
    for term in &SERIES[1..] {
        divisor += 1.0;
        sum += term / divisor;
    }
    0.5 * (2.0 * PI).ln() + (x + 0.5) * base.ln() - base + sum.ln()
}

/// Probability that a normal variable with mean 0 and standard deviation 1 is at most `x`.
pub(super) fn normal_probability(x: f64) -> f64 {
    let upper = 0.5 * complementary_error_function(x.abs() / SQRT_2);
    if x < 0.0 { upper } else { 1.0 - upper }
}

/// 1 − erf(x) for x ≥ 0: its power series near zero, its continued fraction further out.
fn complementary_error_function(x: f64) -> f64 {
    if x < 2.5 {
        let (mut term, mut sum, mut n) = (x, x, 0.0);
        while term.abs() > 1e-17 * sum.abs() && n < 200.0 {
            n += 1.0;
            term *= -x * x / n;
            sum += term / (2.0 * n + 1.0);
        }
        return 1.0 - 2.0 / PI.sqrt() * sum;
    }
    let fraction = (1..=60).rev().fold(x, |tail, k| x + f64::from(k) / 2.0 / tail);
    (-x * x).exp() / PI.sqrt() / fraction
}

/// Density of the standard normal distribution.
pub(super) fn normal_density(x: f64) -> f64 {
    (-0.5 * x * x).exp() / (2.0 * PI).sqrt()
}

/// Quantile of the standard normal distribution.
pub(super) fn normal_quantile(probability: f64) -> f64 {
    solve(-40.0, 40.0, |x| normal_probability(x) < probability)
}

/// Distribution function of the beta distribution with parameters `a` and `b`: the regularised incomplete beta
/// function, by its continued fraction (Lentz's method).
pub(super) fn beta_probability(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - beta_probability(1.0 - x, b, a);
    }
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p()).exp() / a;
    let away_from_zero = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    let (mut upper, mut lower) = (1.0, 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0)));
    let mut fraction = lower;
    for step in 1..=100_000_i32 {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut change = 1.0;
        for coefficient in [even, odd] {
            lower = 1.0 / away_from_zero(1.0 + coefficient * lower);
            upper = away_from_zero(1.0 + coefficient / upper);
            change = upper * lower;
            fraction *= change;
        }
        if (change - 1.0).abs() < 1e-15 {
            break;
        }
    }
    (front * fraction).clamp(0.0, 1.0)
}

/// Quantile of the beta distribution.
pub(super) fn beta_quantile(probability: f64, a: f64, b: f64) -> f64 {
    solve(0.0, 1.0, |x| beta_probability(x, a, b) < probability)
}

/// Probability that a variable of Student's t distribution with that many degrees of freedom is at most `t`.
pub(super) fn student_probability(t: f64, degrees: f64) -> f64 {
    let tail = 0.5 * beta_probability(degrees / (degrees + t * t), degrees / 2.0, 0.5);
    if t < 0.0 { tail } else { 1.0 - tail }
}

/// Quantile of Student's t distribution with that many degrees of freedom.
pub(super) fn student_quantile(probability: f64, degrees: f64) -> f64 {
    solve(-1e6, 1e6, |t| student_probability(t, degrees) < probability)
}

/// Argument at which `too_low` turns from true to false.
pub(super) fn solve(mut low: f64, mut high: f64, too_low: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..BISECTION_STEPS {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if too_low(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn near(value: f64, expected: f64, tolerance: f64) {
        assert!((value - expected).abs() <= tolerance, "{value}, expected {expected}");
    }

    #[test]
    fn tables_of_the_normal_distribution() {
        // Abramowitz and Stegun, tables 26.1 and 26.5.
        near(normal_probability(1.0), 0.841_344_746_068_543, 1e-13);
        near(normal_probability(-2.0), 0.022_750_131_948_179, 1e-13);
        near(normal_probability(4.0), 0.999_968_328_758_167, 1e-13);
        near(normal_quantile(0.975), 1.959_963_984_540_054, 1e-10);
        near(normal_quantile(0.5), 0.0, 1e-12);
    }

    #[test]
    fn tables_of_student_s_t() {
        // Abramowitz and Stegun, table 26.10: 97.5 % for 1, 2, 4, 10 and 120 degrees of freedom.
        for (degrees, value) in [(1.0, 12.706), (2.0, 4.303), (4.0, 2.776), (10.0, 2.228), (120.0, 1.980)] {
            near(student_quantile(0.975, degrees), value, 6e-4);
            near(student_quantile(0.025, degrees), -value, 6e-4);
        }
    }

    #[test]
    fn beta_against_closed_forms() {
        // I_x(a, 1) = x^a, I_x(1, b) = 1 − (1 − x)^b.
        for x in [0.001_f64, 0.1, 0.5, 0.9, 0.999] {
            near(beta_probability(x, 3.0, 1.0), x.powi(3), 1e-13);
            near(beta_probability(x, 1.0, 5.0), 1.0 - (1.0 - x).powi(5), 1e-13);
            near(beta_probability(x, 40.0, 7.0) + beta_probability(1.0 - x, 7.0, 40.0), 1.0, 1e-12);
        }
        near(ln_gamma(6.0), 120.0_f64.ln(), 1e-12);
        near(ln_gamma(0.5), PI.sqrt().ln(), 1e-12);
    }
}
