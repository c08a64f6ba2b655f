//! Queueing disciplines of an interface: a tree whose leaves hold the packets.

use std::collections::BTreeMap;

use crate::environment::QueueStatistics;

/// Queueing discipline (tc(8)).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QdiscNode {
    /// Kind, for example `fq_codel`.
    pub kind: String,
    /// Handle, for example `8001:`; `0:` for the kernel's defaults.
    pub handle: String,
    /// Parent class, for example `8001:1`; `:1` below a default discipline of the kernel. `None` for the root.
    pub parent: Option<String>,
    /// Settings as printed by `tc -j`.
    pub options: BTreeMap<String, String>,
    /// Traffic counters.
    pub statistics: Option<QueueStatistics>,
    /// Further counters, by `tc`'s names: `flows_plimit`, `throttled`, `drop_overlimit`, `ecn_mark`.
    pub counters: BTreeMap<String, u64>,
}

impl QdiscNode {
    /// True for an ingress discipline, which does not queue.
    #[must_use]
    pub fn is_for_received(&self) -> bool {
        matches!(self.kind.as_str(), "ingress" | "clsact")
    }

    /// Handle of the discipline of the parent class, without the colon; `0` for the kernel's defaults.
    #[must_use]
    pub fn parent_major(&self) -> Option<&str> {
        let (major, _) = self.parent.as_deref()?.split_once(':')?;
        Some(if major.is_empty() { "0" } else { major })
    }

    fn major(&self) -> &str {
        self.handle.strip_suffix(':').unwrap_or(&self.handle)
    }
}

/// Root of a tree.
#[must_use]
pub fn root(tree: &[QdiscNode]) -> Option<&QdiscNode> {
    tree.iter().find(|discipline| discipline.parent.is_none() && !discipline.is_for_received())
}

/// Leaf disciplines of a tree, which hold packets: those without children. In a tree of the kernel's defaults, the root
/// and all leaves have the same handle, 0.
#[must_use]
pub fn leaves(tree: &[QdiscNode]) -> Vec<&QdiscNode> {
    let is_parent = |discipline: &QdiscNode| {
        let below = |other: &QdiscNode| other.parent_major() == Some(discipline.major());
        let can_be = discipline.parent.is_none() || discipline.major() != "0";
        can_be && tree.iter().any(|other| !other.is_for_received() && below(other))
    };
    tree.iter().filter(|discipline| !discipline.is_for_received() && !is_parent(discipline)).collect()
}

/// Leaves, each with the kind of its parent discipline; `None` for a root.
#[must_use]
pub fn disciplines_with_parent_kinds(tree: &[QdiscNode]) -> Vec<(&QdiscNode, Option<&str>)> {
    let kind_above = |discipline: &QdiscNode| {
        let major = discipline.parent_major()?;
        let is_it = |other: &&QdiscNode| other.major() == major && (other.parent.is_none() || major != "0");
        tree.iter().find(is_it).map(|parent| parent.kind.as_str())
    };
    leaves(tree).into_iter().map(|leaf| (leaf, kind_above(leaf))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(of: &[(&str, &str, Option<&str>)]) -> Vec<QdiscNode> {
        let one = |(kind, handle, parent): &(&str, &str, Option<&str>)| QdiscNode {
            kind: (*kind).to_owned(),
            handle: (*handle).to_owned(),
            parent: parent.map(str::to_owned),
            ..QdiscNode::default()
        };
        of.iter().map(one).collect()
    }

    #[test]
    fn leaves_below_mq_have_its_handle_and_are_leaves() {
        let made_by_kernel = tree(&[("mq", "0:", None), ("fq_codel", "0:", Some(":2")), ("fq", "0:", Some(":1"))]);
        let kinds: Vec<&str> = leaves(&made_by_kernel).iter().map(|leaf| leaf.kind.as_str()).collect();
        assert_eq!(kinds, ["fq_codel", "fq"]);
        assert_eq!(disciplines_with_parent_kinds(&made_by_kernel)[0].1, Some("mq"));
        assert_eq!(root(&made_by_kernel).map(|root| root.kind.as_str()), Some("mq"));
    }

    #[test]
    fn leaves_below_classes_and_below_other_disciplines() {
        let shaped = tree(&[
            ("htb", "1:", None),
            ("fq", "10:", Some("1:10")),
            ("netem", "20:", Some("1:20")),
            ("tbf", "30:", Some("20:1")),
            ("clsact", "ffff:", Some("ffff:fff1")),
        ]);
        let found = disciplines_with_parent_kinds(&shaped);
        let found: Vec<_> = found.iter().map(|(leaf, above)| (leaf.kind.as_str(), *above)).collect();
        assert_eq!(found, [("fq", Some("htb")), ("tbf", Some("netem"))]);
        let alone = tree(&[("fq_codel", "0:", None)]);
        assert_eq!(disciplines_with_parent_kinds(&alone), [(&alone[0], None)]);
        assert!(leaves(&[]).is_empty() && root(&[]).is_none());
    }
}
