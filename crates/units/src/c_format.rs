//! `%g` of C's `printf`, which Rust's formatting lacks.

/// C's `%.{precision}g`: `precision` significant digits, without trailing zeros, in powers of ten when the exponent is
/// below -4 or not below the precision (ISO C 7.23.6.1). Infinities and NaN as glibc prints them.
#[must_use]
pub fn general(value: f64, precision: usize) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let precision = precision.max(1);
    let scientific = format!("{value:.*e}", precision - 1);
    // Rust prints both in each case.
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let digits = i32::try_from(precision).unwrap_or(i32::MAX);
    if exponent < -4 || exponent >= digits {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", without_trailing_zeros(mantissa), exponent.unsigned_abs());
    }
    let decimals = usize::try_from(digits - 1 - exponent).unwrap_or(0);
    without_trailing_zeros(&format!("{value:.decimals$}")).to_owned()
}

fn without_trailing_zeros(number: &str) -> &str {
    if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_printf_prints() {
        for (value, precision, expected) in [
            (0.0, 2, "0"),
            (-0.0, 2, "-0"),
            (100.0, 2, "1e+02"),
            (99.6, 2, "1e+02"),
            (99.4, 2, "99"),
            (0.053_57, 2, "0.054"),
            (0.000_012_3, 2, "1.2e-05"),
            (0.000_1, 2, "0.0001"),
            (33.333_333, 2, "33"),
            (1.5, 15, "1.5"),
            (22_967_893_314.387_146, 17, "22967893314.387146"),
            (1e21, 17, "1e+21"),
            (f64::INFINITY, 3, "inf"),
        ] {
            assert_eq!(general(value, precision), expected, "%.{precision}g of {value:?}");
        }
    }

    #[test]
    fn halves_go_to_the_even_digit() {
        assert_eq!(general(0.125, 2), "0.12");
        assert_eq!(general(2.5, 1), "2");
        assert_eq!(general(3.5, 1), "4");
    }
}
