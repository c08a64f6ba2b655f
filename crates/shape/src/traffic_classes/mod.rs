//! Traffic classes with rates of their own: devices, customers and groups of them.

mod class_file;
mod class_list;
mod rates;
mod selector;
#[cfg(test)]
mod tests;

pub use self::class_file::{ClassFileReader, MAX_FILE_ERRORS, MAX_LINE_LENGTH, parse_class, parse_class_file};
pub use self::class_list::{MAX_CLASSES, MAX_GROUP_DEPTH, TrafficClass, TrafficClasses};
pub use self::rates::{ClassRates, parse_rates};
pub use self::selector::ClassSelector;
