//! Probes by one `tc -force -batch -` instead of a process for each command.

use super::probes::PROBE_DEVICE;
use super::{FeatureProbe, FeatureSupport};

/// Probes of which each command is one of `tc`, as lines of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeBatch {
    /// Each probe, with the number of its command's line; the first is 1.
    probes: Vec<(FeatureProbe, usize)>,
    lines: Vec<String>,
}

impl ProbeBatch {
    /// Takes the probes that `tc` alone executes; returns the others, too.
    #[must_use]
    pub fn of(probes: Vec<FeatureProbe>) -> (Self, Vec<FeatureProbe>) {
        let is_tc = |probe: &FeatureProbe| {
            let commands = probe.before.iter().chain([&probe.trial]).chain(&probe.after);
            commands.into_iter().all(|command| command.program == "tc")
        };
        let (own, others): (Vec<_>, Vec<_>) = probes.into_iter().partition(is_tc);
        let mut batch = Self { probes: Vec::new(), lines: Vec::new() };
        for probe in own {
            batch.lines.extend(probe.before.iter().map(|command| command.words.join(" ")));
            batch.lines.push(probe.trial.words.join(" "));
            let line = batch.lines.len();
            batch.lines.extend(probe.after.iter().map(|command| command.words.join(" ")));
            batch.probes.push((probe, line));
        }
        // At the second time there is certainly nothing to remove.
        let removal = format!("qdisc del dev {PROBE_DEVICE} root");
        batch.lines.extend([removal.clone(), removal]);
        (batch, others)
    }

    /// Standard input of `tc -force -batch -`.
    #[must_use]
    pub fn script(&self) -> String {
        self.lines.iter().flat_map(|line| [line, "\n"]).collect()
    }

    /// Interprets its standard error: what a command says is followed by `Command failed -:LINE`. `None` when not every line was
    /// executed, as some errors end `tc`: the last one always fails.
    #[must_use]
    pub fn interpret(&self, standard_error: &str) -> Option<Vec<(FeatureProbe, FeatureSupport)>> {
        let (mut failures, mut said) = (Vec::new(), String::new());
        for line in standard_error.lines() {
            match line.strip_prefix("Command failed ").and_then(|place| place.rsplit_once(':')?.1.parse::<usize>().ok())
            {
                Some(number) => failures.push((number, std::mem::take(&mut said))),
                None => said.extend([line, "\n"]),
            }
        }
        let failure = |number: usize| failures.iter().find(|(failed, _)| *failed == number).map(|(_, said)| said);
        failure(self.lines.len())?;
        let support = |(probe, line): &(FeatureProbe, usize)| {
            let failure = failure(*line);
            (probe.clone(), probe.interpret(failure.is_none(), failure.map_or("", String::as_str)))
        };
        Some(self.probes.iter().map(support).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{KernelFeature, probes};
    use super::*;

    /// Answers as iproute2 6.1 writes them on Linux 6.18, with names in place of some numbers of lines.
    const SAID: &str = "Error: Exclusivity flag on, cannot modify.\nCommand failed -:2\n\
        Error: TC classifier not found.\nWe have an error talking to the kernel\nCommand failed -:FW\n\
        Error: Specified qdisc kind is unknown.\nCommand failed -:CAKE\n\
        Unknown qdisc \"dualpi2\", hence option \"x\" is unparsable\nCommand failed -:DUALPI2\n\
        Error: Cannot delete qdisc with handle of zero.\nCommand failed -:LAST\n";

    #[test]
    fn each_probe_has_the_answer_of_its_line() {
        let (batch, others) = ProbeBatch::of(probes());
        assert_eq!(others.len(), 2, "cake_mq and intermediate devices need ip");
        assert_eq!(batch.probes.len() + others.len(), probes().len());
        let line = |feature: KernelFeature| {
            let (probe, line) = batch.probes.iter().find(|(probe, _)| probe.feature == feature).expect("listed");
            assert_eq!(batch.script().lines().nth(line - 1), Some(&*probe.trial.words.join(" ")));
            line.to_string()
        };
        let said = SAID
            .replace("FW", &line(KernelFeature::Filter("fw")))
            .replace("CAKE", &line(KernelFeature::Discipline("cake")))
            .replace("DUALPI2", &line(KernelFeature::Discipline("dualpi2")));
        let whole = said.replace("LAST", &batch.script().lines().count().to_string());
        let found = batch.interpret(&whole).expect("all executed");
        let support = |feature| &found.iter().find(|(probe, _)| probe.feature == feature).expect("interpreted").1;
        assert_eq!(*support(KernelFeature::Discipline("htb")), FeatureSupport::Present);
        assert_eq!(*support(KernelFeature::Filter("fw")), FeatureSupport::Absent("TC classifier not found".to_owned()));
        assert!(matches!(support(KernelFeature::Discipline("cake")), FeatureSupport::Absent(_)));
        assert!(matches!(support(KernelFeature::Discipline("dualpi2")), FeatureSupport::Refused(_)));
        assert_eq!(batch.interpret(&said), None, "tc ended early");
        assert_eq!(batch.interpret(""), None);
    }
}
