//! The wanted options, and the check that a configuration has them.

use std::collections::HashMap;

use super::recipe::FRAGMENT;

/// Marks an option that some versions of the kernel do not have.
const OPTIONAL: &str = "# optional";

/// A line of the fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct WantedOption<'a> {
    name: &'a str,
    /// `None` when it is to be off.
    value: Option<&'a str>,
    optional: bool,
}

/// Options that a configuration lacks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct MissingOptions {
    /// Options without which the lab's paths do not work.
    pub(super) required: Vec<String>,
    /// Options without which some paths do not work.
    pub(super) optional: Vec<String>,
}

/// The fragment for the kernel's configuration program, which allows no comments after values.
pub(super) fn for_kconfig() -> String {
    FRAGMENT.lines().map(|line| line.trim_end_matches(OPTIONAL).trim_end()).flat_map(|line| [line, "\n"]).collect()
}

/// Options of the fragment that the configuration (the text of a `.config`) lacks.
pub(super) fn lacking(configuration: &str) -> MissingOptions {
    compare(FRAGMENT, configuration)
}

fn compare(fragment: &str, configuration: &str) -> MissingOptions {
    let found: HashMap<_, _> = configuration.lines().filter_map(|line| line.split_once('=')).collect();
    let mut lacking = MissingOptions::default();
    for wanted in fragment.lines().filter_map(parse) {
        if found.get(wanted.name).copied() != wanted.value {
            let list = if wanted.optional { &mut lacking.optional } else { &mut lacking.required };
            list.push(format!("{}={}", wanted.name, wanted.value.unwrap_or("n")));
        }
    }
    lacking
}

fn parse(line: &str) -> Option<WantedOption<'_>> {
    let optional = line.ends_with(OPTIONAL);
    let line = line.trim_end_matches(OPTIONAL).trim();
    if let Some(name) = line.strip_prefix("# ").and_then(|rest| rest.strip_suffix(" is not set")) {
        return Some(WantedOption { name, value: None, optional });
    }
    let (name, value) = line.split_once('=').filter(|(name, _)| name.starts_with("CONFIG_"))?;
    Some(WantedOption { name, value: Some(value).filter(|value| *value != "n"), optional })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_are_not_in_effect() {
        let fragment = "# words\nCONFIG_A=y\nCONFIG_B=y # optional\n# CONFIG_C is not set\nCONFIG_D=y\nCONFIG_E=n\n";
        let configuration = "# CONFIG_A is not set\nCONFIG_C=y\nCONFIG_D=y\nCONFIG_DD=y\n# CONFIG_E is not set\n";
        let found = compare(fragment, configuration);
        assert_eq!(found.required, ["CONFIG_A=y", "CONFIG_C=n"]);
        assert_eq!(found.optional, ["CONFIG_B=y"]);
        assert_eq!(compare(fragment, "CONFIG_A=y\nCONFIG_B=y\nCONFIG_D=y\n"), MissingOptions::default());
    }

    /// Options that the lab's paths are made of; removing one of these from the fragment is a mistake.
    #[test]
    fn the_fragment_has_what_paths_need() {
        let wanted: Vec<_> = FRAGMENT.lines().filter_map(parse).collect();
        let required = |name: &str| {
            let name = format!("CONFIG_{name}");
            wanted.iter().any(|option| option.name == name && option.value == Some("y") && !option.optional)
        };
        for name in "UML_TIME_TRAVEL_SUPPORT HOSTFS OVERLAY_FS TMPFS_XATTR NET_NS VETH IFB TUN PACKET INET_DIAG \
                     ETHTOOL_NETLINK IPV6 NET_SCH_NETEM NET_SCH_TBF NET_SCH_INGRESS NET_CLS_MATCHALL NET_CLS_BPF \
                     NET_EMATCH_META NET_ACT_POLICE NET_ACT_GACT GACT_PROB NET_ACT_MIRRED NET_ACT_PEDIT NET_ACT_CSUM \
                     TCP_CONG_CUBIC TCP_CONG_BBR TCP_CONG_HTCP TCP_CONG_WESTWOOD TCP_CONG_BIC"
            .split_ascii_whitespace()
        {
            assert!(required(name), "{name}");
        }
    }

    #[test]
    fn the_configuration_program_sees_no_remarks_behind_values() {
        let text = for_kconfig();
        assert!(!text.contains(OPTIONAL));
        assert_eq!(text.lines().filter_map(parse).count(), FRAGMENT.lines().filter_map(parse).count());
    }

    #[test]
    fn each_option_once() {
        let mut names: Vec<_> = FRAGMENT.lines().filter_map(parse).map(|option| option.name).collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
