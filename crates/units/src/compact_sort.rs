//! Sorting and collecting with little code for each type.

use core::cmp::Ordering;

/// Stable sorting of short lists. The sort of the standard library is five kilobytes of code for each type and order; this
/// one sorts indices, and is for lists whose order is not worth that.
pub trait CompactSort<T> {
    /// Sorts by an order of the items.
    fn sort_compactly_by(&mut self, compare: impl FnMut(&T, &T) -> Ordering);

    /// Sorts by a key of the items.
    fn sort_compactly_by_key<K: Ord>(&mut self, key: impl FnMut(&T) -> K);
}

impl<T> CompactSort<T> for [T] {
    fn sort_compactly_by(&mut self, mut compare: impl FnMut(&T, &T) -> Ordering) {
        let mut order = order(self.len(), &mut |one, other| compare(&self[one], &self[other]));
        permute(&mut order, &mut |one, other| self.swap(one, other));
    }

    fn sort_compactly_by_key<K: Ord>(&mut self, mut key: impl FnMut(&T) -> K) {
        self.sort_compactly_by(|one, other| key(one).cmp(&key(other)));
    }
}

/// Collecting of few items into a map or set, one by one: the standard library sorts them first, with code of its own for
/// each type.
pub trait CompactCollect: Iterator + Sized {
    /// Collects the items.
    fn collect_compactly<C: Default + Extend<Self::Item>>(self) -> C {
        let mut collection = C::default();
        collection.extend(self);
        collection
    }
}

impl<I: Iterator> CompactCollect for I {}

/// Indices of the items in their order.
fn order(length: usize, compare: &mut dyn FnMut(usize, usize) -> Ordering) -> Vec<usize> {
    let mut order: Vec<usize> = (0..length).collect();
    order.sort_by(|one, other| compare(*one, *other));
    order
}

/// Swaps items until each index has the item that `order` names for it.
fn permute(order: &mut [usize], swap: &mut dyn FnMut(usize, usize)) {
    for first in 0..order.len() {
        let mut index = first;
        while order[index] != first {
            let next = order[index];
            swap(index, next);
            order[index] = index;
            index = next;
        }
        order[index] = index;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn order_is_that_of_the_standard_library(mut items in proptest::collection::vec((0..8_u8, any::<u16>()), 0..40)) {
            let mut expected = items.clone();
            expected.sort_by_key(|item| item.0);
            items.sort_compactly_by_key(|item| item.0);
            prop_assert_eq!(&items, &expected);
            expected.sort_by(|one, other| other.cmp(one));
            items.sort_compactly_by(|one, other| other.cmp(one));
            prop_assert_eq!(&items, &expected);
            let map: BTreeMap<u8, u16> = items.iter().copied().collect_compactly();
            prop_assert_eq!(map, items.into_iter().collect());
        }
    }
}
