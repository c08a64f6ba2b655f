//! Pairs of a group, each once with its directions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use linerate_documents::fleet_plan::SessionDirections;

use crate::FleetError;
use crate::description::{AddressGroup, AddressSelector, ExcludedPairs, FleetDescription};
use crate::sessions::unknown;

/// Two addresses that are measured, in alphabetical order, with their hosts.
pub(crate) struct AddressPair {
    pub(crate) addresses: [Arc<str>; 2],
    pub(crate) hosts: [Arc<str>; 2],
    pub(crate) directions: SessionDirections,
}

/// Addresses by number, in alphabetical order: a thousand of them have a million pairs, which numbers sort faster than names.
struct NumberedAddresses<'a> {
    names: Vec<Arc<str>>,
    hosts: Vec<Arc<str>>,
    numbers: BTreeMap<&'a str, u32>,
}

/// Pair from the address that sends to the one that receives.
type DirectedPair = (u32, u32);

/// Pairs of a group; addresses that are disabled have none.
///
/// # Errors
///
/// The group names an address that is not there.
pub(crate) fn of_group(
    description: &FleetDescription,
    name: &str,
    group: &AddressGroup,
) -> Result<Vec<AddressPair>, FleetError> {
    let numbered = NumberedAddresses::new(description);
    let owner = format!("group {name:?}");
    let used = |selectors: &[AddressSelector]| numbered.used(description, &owner, selectors);
    let (sources, targets, is_both_ways, excludes) = match group {
        AddressGroup::Mesh { addresses, excludes, .. } => (used(addresses)?, used(addresses)?, false, excludes),
        AddressGroup::Disjoint { a_addresses, b_addresses, unidirectional, excludes, .. } => {
            (used(a_addresses)?, used(b_addresses)?, !unidirectional, excludes)
        }
    };
    let left_out = numbered.excluded(excludes);
    let host = |address: u32| numbered.hosts.get(address as usize);
    let mut directed = Vec::new();
    for source in sources {
        for target in targets.iter().copied().filter(|target| host(source) != host(*target)) {
            directed.push((source, target));
            if is_both_ways {
                directed.push((target, source));
            }
        }
    }
    directed.retain(|pair| !left_out.contains(pair));
    Ok(undirected(directed).filter_map(|(pair, directions)| numbered.pair(pair, directions)).collect())
}

impl<'a> NumberedAddresses<'a> {
    fn new(description: &'a FleetDescription) -> Self {
        let all = || description.addresses.keys().map(String::as_str);
        let names = all().map(Arc::from).collect();
        let hosts = all().map(|name| description.host_of(name).into()).collect();
        Self { names, hosts, numbers: all().zip(0..).collect() }
    }

    /// Addresses of these that are measured.
    fn used(
        &self,
        description: &FleetDescription,
        owner: &str,
        selectors: &[AddressSelector],
    ) -> Result<Vec<u32>, FleetError> {
        let number = |selector: &AddressSelector| {
            let number = self.numbers.get(selector.name.as_str()).copied();
            number.ok_or_else(|| unknown(owner, "address", &selector.name))
        };
        let known: Vec<(u32, &AddressSelector)> =
            selectors.iter().map(|selector| Ok((number(selector)?, selector))).collect::<Result<_, FleetError>>()?;
        let is_used = |selector: &AddressSelector| !selector.disabled && description.is_measured(&selector.name);
        Ok(known.into_iter().filter(|(_, selector)| is_used(selector)).map(|(number, _)| number).collect())
    }

    fn excluded(&self, excludes: &[ExcludedPairs]) -> BTreeSet<DirectedPair> {
        let number = |selector: &AddressSelector| self.numbers.get(selector.name.as_str()).copied();
        let pairs = excludes.iter().flat_map(|pairs| {
            let source = number(&pairs.local_address);
            pairs.target_addresses.iter().filter_map(move |target| Some((source?, number(target)?)))
        });
        pairs.collect()
    }

    fn pair(&self, (first, second): (u32, u32), directions: SessionDirections) -> Option<AddressPair> {
        let of = |list: &[Arc<str>], number: u32| list.get(number as usize).cloned();
        let both = |list: &[Arc<str>]| Some([of(list, first)?, of(list, second)?]);
        Some(AddressPair { addresses: both(&self.names)?, hosts: both(&self.hosts)?, directions })
    }
}

/// Each pair once, the smaller number first.
fn undirected(directed: Vec<DirectedPair>) -> impl Iterator<Item = ((u32, u32), SessionDirections)> {
    let ordered = |(source, target): DirectedPair| {
        if source < target {
            ((source, target), SessionDirections::Forward)
        } else {
            ((target, source), SessionDirections::Backward)
        }
    };
    let mut pairs: Vec<_> = directed.into_iter().map(ordered).collect();
    pairs.sort_unstable();
    pairs.dedup();
    pairs.dedup_by(|later, kept| {
        let is_same = later.0 == kept.0;
        if is_same {
            kept.1 = SessionDirections::Both;
        }
        is_same
    });
    pairs.into_iter()
}
