use core::time::Duration;

use linerate_units::Ratio;

use super::FormulaDescription;

/// Formula, source and common mistakes.
pub const FORMULA: FormulaDescription = FormulaDescription {
    name: "E-model",
    text: "R = 93.2 − Id − Ie,eff; MOS = 1 + 0.035 R + 7e-6 R (R − 60) (100 − R)",
    citation: "ITU-T G.107 (06/2015) §7 and Annex B; codecs: ITU-T G.113 (11/2007) Appendix I",
    explanation: "The rating R of a telephone call as its users would judge it, and the mean opinion score (1 to 5) \
                  that follows from it. Id is the impairment by delay: talker echo, listener echo and, above 100 ms, \
                  the delay itself. Ie,eff = Ie + (95 − Ie) × loss / (loss / BurstR + Bpl), loss in percent, is that of \
                  the codec and of lost packets: Ie and Bpl belong to the codec, BurstR is 1 for random loss and more \
                  for bursts. All other parameters have the defaults of the recommendation, which give 93.2, a score \
                  of 4.41: no narrow-band call is better.\n\n\
                  The delay is from mouth to ear, so it includes the packet, the buffer against jitter and the codec, \
                  and a packet that comes after its playout is lost. A common shortcut, 93.2 − delay / 40 up to 160 ms \
                  and a steeper line above with 2.5 points for each percent of loss, comes from no recommendation; for \
                  G.711 with concealment the formula takes 3.6 points for the first percent, without it 17.9.",
};

/// Noise sum No at the default parameters, in dBm0p (G.107 §7.2).
const NOISE_SUM: f64 = -61.179_21;

/// Basic signal-to-noise ratio Ro = 15 − 1.5 (SLR + No), with SLR = 8 dB (G.107 §7.2).
const BASIC_RATIO: f64 = 15.0 - 1.5 * (8.0 + NOISE_SUM);

/// Simultaneous impairment Is at the default parameters (G.107 §7.3).
const SIMULTANEOUS_IMPAIRMENT: f64 = 1.413_58;

/// Defaults of G.107 table 2, in dB: receive loudness, talker echo loudness, weighted echo path loss.
const RECEIVE_LOUDNESS: f64 = 2.0;
const TALKER_ECHO_LOUDNESS: f64 = 65.0;
const ECHO_PATH_LOSS: f64 = 110.0;

/// Delay from which the delay itself impairs a conversation: mT of G.107 §7.4, in milliseconds.
const MIN_PERCEIVED_DELAY: f64 = 100.0;

/// Range of the burst ratio in G.107 table 2.
const BURST_RATIO_RANGE: (f64, f64) = (1.0, 8.0);

/// Speech codec with its parameters of G.113 Appendix I.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VoiceCodec {
    /// Name on command lines.
    pub name: &'static str,
    /// Equipment impairment factor Ie without loss.
    pub impairment: f64,
    /// Packet-loss robustness factor Bpl, in percent.
    pub robustness: f64,
}

impl VoiceCodec {
    /// G.711 with the packet-loss concealment of its Appendix I.
    pub const G711: Self = Self { name: "g711", impairment: 0.0, robustness: 25.1 };
    /// G.711 without concealment: silence in place of a lost packet.
    pub const G711_PLAIN: Self = Self { name: "g711-plain", impairment: 0.0, robustness: 4.3 };
    /// G.729A with voice activity detection.
    pub const G729A: Self = Self { name: "g729a", impairment: 11.0, robustness: 19.0 };
    /// G.723.1 at 6.3 kbit/s with voice activity detection.
    pub const G723_1: Self = Self { name: "g723.1", impairment: 15.0, robustness: 16.1 };
    /// GSM enhanced full rate at 12.2 kbit/s.
    pub const GSM_EFR: Self = Self { name: "gsm-efr", impairment: 5.0, robustness: 10.0 };
    /// All codecs.
    pub const ALL: [Self; 5] = [Self::G711, Self::G711_PLAIN, Self::G729A, Self::G723_1, Self::GSM_EFR];

    /// Codec of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|codec| codec.name == name)
    }

    /// Effective equipment impairment Ie,eff under packet loss (G.107 §7.5). `burst_ratio` is held within 1 to 8.
    #[must_use]
    pub fn loss_impairment(&self, loss: Ratio, burst_ratio: Ratio) -> f64 {
        let percent = loss.percent().min(100.0);
        let bursts = burst_ratio.get().clamp(BURST_RATIO_RANGE.0, BURST_RATIO_RANGE.1);
        self.impairment + (95.0 - self.impairment) * percent / (percent / bursts + self.robustness)
    }
}

/// Transmission rating R of a call: 93.2 for the best narrow-band one, 0 and below for an unusable one.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct TransmissionRating(f64);

impl TransmissionRating {
    /// Rating of a call (G.107 §7.1), with no advantage factor.
    ///
    /// `delay` is the mean one-way delay from mouth to ear, half of that around the conversation's loop.
    #[must_use]
    pub fn of(codec: &VoiceCodec, delay: Duration, loss: Ratio, burst_ratio: Ratio) -> Self {
        let quality = BASIC_RATIO - SIMULTANEOUS_IMPAIRMENT;
        Self(quality - delay_impairment(delay) - codec.loss_impairment(loss, burst_ratio))
    }

    /// Rating with this value.
    #[must_use]
    pub const fn new(value: f64) -> Self {
        Self(value)
    }

    /// Value on the scale R.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }

    /// Mean opinion score, conversational, estimated: 1 to 4.5 (G.107 Annex B).
    #[must_use]
    pub fn mean_opinion_score(self) -> f64 {
        // The polynomial falls below 1 between 0 and 6.5.
        let r = self.0.clamp(0.0, 100.0);
        (1.0 + 0.035 * r + 7e-6 * r * (r - 60.0) * (100.0 - r)).max(1.0)
    }
}

/// Delay impairment Id = Idte + Idle + Idd (G.107 §7.4), for a call whose directions have equal delays.
#[must_use]
pub fn delay_impairment(delay: Duration) -> f64 {
    let milliseconds = delay.as_secs_f64() * 1e3;
    talker_echo(milliseconds) + listener_echo(2.0 * milliseconds) + absolute_delay(milliseconds)
}

/// Idte: talker echo after the mean one-way delay.
fn talker_echo(delay: f64) -> f64 {
    let echo_loudness = TALKER_ECHO_LOUDNESS - 40.0 * ((1.0 + delay / 10.0) / (1.0 + delay / 150.0)).log10()
        + 6.0 * (-0.3 * delay * delay).exp();
    let half = (-1.5 * (NOISE_SUM - RECEIVE_LOUDNESS) - (80.0 + 2.5 * (echo_loudness - 14.0))) / 2.0;
    (half + (half * half + 100.0).sqrt() - 1.0) * (1.0 - (-delay).exp())
}

/// Idle: listener echo after the round trip.
fn listener_echo(round_trip: f64) -> f64 {
    let half = (BASIC_RATIO - 10.5 * (ECHO_PATH_LOSS + 7.0) * (round_trip + 1.0).powf(-0.25)) / 2.0;
    half + (half * half + 169.0).sqrt()
}

/// Idd: delay that is too long for a conversation even without echo.
fn absolute_delay(delay: f64) -> f64 {
    if delay <= MIN_PERCEIVED_DELAY {
        return 0.0;
    }
    let doublings = (delay / MIN_PERCEIVED_DELAY).log2();
    let root = |value: f64| (1.0 + value.powi(6)).powf(1.0 / 6.0);
    25.0 * (root(doublings) - 3.0 * root(doublings / 3.0) + 2.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rating(codec: &VoiceCodec, milliseconds: u64, percent: f64) -> f64 {
        let loss = Ratio::from_percent(percent).expect("a share");
        TransmissionRating::of(codec, Duration::from_millis(milliseconds), loss, RANDOM).get()
    }

    const RANDOM: Ratio = Ratio::ZERO;

    /// Noise sum and simultaneous impairment from the parameters of G.107 table 2.
    #[test]
    fn constants_follow_from_the_default_parameters() {
        let (slr, rlr, stmr, ds, dr, ps, pr, nc, floor) = (8.0, 2.0, 15.0, 3.0, 3.0, 35.0, 35.0, -70.0, -64.0_f64);
        let power = |level: f64| 10_f64.powf(level / 10.0);
        let olr = slr + rlr;
        let nos = ps - slr - ds - 100.0 + 0.004 * (ps - olr - ds - 14.0_f64).powi(2);
        let pre = pr + 10.0 * (1.0 + power(10.0 - (stmr + dr))).log10();
        let nor = rlr - 121.0 + pre + 0.008 * (pre - 35.0).powi(2);
        let no = 10.0 * (power(nc) + power(nos) + power(nor) + power(floor + rlr)).log10();
        assert!((no - NOISE_SUM).abs() < 1e-3, "{no}");
        let root = |value: f64, power: i32| (1.0 + value.powi(power)).powf(1.0 / f64::from(power));
        let loudness = (olr + 0.2 * (64.0 + no - rlr)) / 8.0;
        let too_loud = 20.0 * (root(loudness, 8) - loudness);
        let side = 12.0 * root((stmr - 13.0) / 6.0, 8)
            - 28.0 * root((stmr + 1.0) / 19.4, 35)
            - 13.0 * root((stmr - 3.0) / 33.0, 13)
            + 29.0;
        let quantising_distance = 37.0; // 37 − 15 log10(1 qdu)
        let g = 1.07 + 0.258 * quantising_distance + 0.0602 * f64::powi(quantising_distance, 2);
        let ro = 15.0 - 1.5 * (slr + no);
        let (y, z) = ((ro - 100.0) / 15.0 + 46.0 / 8.4 - g / 9.0, 46.0 / 30.0 - g / 40.0);
        let quantising = 15.0 * (1.0 + 10_f64.powf(y) + 10_f64.powf(z)).log10();
        let is = too_loud + side + quantising;
        assert!((is - SIMULTANEOUS_IMPAIRMENT).abs() < 1e-3, "{is}");
    }

    #[test]
    fn the_default_call_has_the_published_rating() {
        let best = rating(&VoiceCodec::G711, 0, 0.0);
        assert!((best - 93.2).abs() < 0.05, "{best}");
        let score = TransmissionRating::new(93.2).mean_opinion_score();
        assert!((score - 4.41).abs() < 0.005, "{score}");
        // G.107 Annex B, table B.1: R and its score, which is rounded up at 80 (4.024).
        for (r, score) in [(90.0, 4.34), (80.0, 4.03), (70.0, 3.60), (60.0, 3.10), (50.0, 2.58)] {
            let found = TransmissionRating::new(r).mean_opinion_score();
            assert!((found - score).abs() < 0.01, "{r}: {found}");
        }
        for (r, score) in [(-20.0, 1.0), (0.0, 1.0), (3.0, 1.0), (100.0, 4.5), (120.0, 4.5)] {
            assert!((TransmissionRating::new(r).mean_opinion_score() - score).abs() < 1e-9, "{r}");
        }
    }

    /// Cole and Rosenbluth (2001) fitted Id = 0.024 d + 0.11 (d − 177.3) above 177.3 ms to this model.
    #[test]
    fn delay_impairment_is_near_the_published_fit() {
        for delay in [0_u64, 50, 100, 150, 177, 200, 250, 300, 400] {
            #[expect(clippy::cast_precision_loss, reason = "small")]
            let d = delay as f64;
            let fit = 0.024 * d + 0.11 * (d - 177.3).max(0.0);
            let found = delay_impairment(Duration::from_millis(delay));
            assert!((found - fit).abs() < 3.5, "{delay} ms: {found}, fit {fit}");
        }
        assert!(delay_impairment(Duration::from_secs(2)) > 60.0);
    }

    #[test]
    fn loss_and_codecs_have_the_published_impairments() {
        // Without loss, Ie of G.113: 11 for G.729A.
        assert!((rating(&VoiceCodec::G711, 0, 0.0) - rating(&VoiceCodec::G729A, 0, 0.0) - 11.0).abs() < 1e-9);
        // 95 × 1 / (1 + 25.1), 95 × 1 / (1 + 4.3), 11 + 84 × 3 / (3 + 19).
        for (codec, percent, impairment) in
            [(VoiceCodec::G711, 1.0, 3.640), (VoiceCodec::G711_PLAIN, 1.0, 17.925), (VoiceCodec::G729A, 3.0, 22.455)]
        {
            let found = codec.loss_impairment(Ratio::from_percent(percent).expect("a share"), RANDOM);
            assert!((found - impairment).abs() < 0.001, "{}: {found}", codec.name);
        }
        // Twice as long bursts as at random are worse: 95 × 5 / (5 / 2 + 25.1).
        let bursts = VoiceCodec::G711.loss_impairment(Ratio::new(0.05).expect("a share"), Ratio::new(2.0).expect("2"));
        assert!((bursts - 17.210).abs() < 0.001, "{bursts}");
        assert_eq!(VoiceCodec::named("g729a"), Some(VoiceCodec::G729A));
        assert_eq!(VoiceCodec::named("opus"), None);
    }

    proptest! {
        #[test]
        fn more_delay_or_loss_is_never_better(
            delay in 0_u64..3000, more_delay in 0_u64..3000, loss in 0.0..100.0_f64, more_loss in 0.0..100.0_f64,
        ) {
            let codec = VoiceCodec::G711;
            let base = rating(&codec, delay, loss);
            prop_assert!(rating(&codec, delay + more_delay, loss) <= base + 1e-9);
            prop_assert!(rating(&codec, delay, (loss + more_loss).min(100.0)) <= base + 1e-9);
            let score = TransmissionRating::new(base).mean_opinion_score();
            prop_assert!((1.0..=4.5).contains(&score));
        }

        #[test]
        fn a_higher_rating_never_has_a_lower_score(one in -50.0..150.0_f64, two in -50.0..150.0_f64) {
            let score = |r: f64| TransmissionRating::new(r).mean_opinion_score();
            prop_assert!(score(one.min(two)) <= score(one.max(two)) + 1e-9);
        }
    }
}
