//! `getsockopt` and `setsockopt` with one place for their unsafe code.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use crate::error::{Error, Result, check};

/// A socket option's place in the kernel's tables, and its description.
#[derive(Clone, Copy)]
pub(crate) struct SocketOption {
    /// The protocol level, for example `IPPROTO_TCP`.
    pub(crate) level: libc::c_int,
    /// The option's number at that level.
    pub(crate) number: libc::c_int,
    /// The option's name in the kernel's headers.
    pub(crate) name: &'static str,
    /// Description of the option.
    pub(crate) meaning: &'static str,
}

impl SocketOption {
    pub(crate) const fn new(
        level: libc::c_int,
        number: libc::c_int,
        name: &'static str,
        meaning: &'static str,
    ) -> Self {
        Self { level, number, name, meaning }
    }

    fn error(self, verb: &str, cause: io::Error) -> Error {
        Error::SocketOption { operation: format!("{verb} the {}", self.meaning), option: self.name, cause, hint: None }
    }
}

/// Integers that options have.
pub(crate) trait OptionValue: Sized {
    /// The bytes in memory.
    type Bytes: AsRef<[u8]> + AsMut<[u8]> + Default;
    fn into_bytes(self) -> Self::Bytes;
    fn from_bytes(bytes: Self::Bytes) -> Self;
}

macro_rules! option_values {
    ($($integer:ty),*) => {$(
        impl OptionValue for $integer {
            type Bytes = [u8; size_of::<$integer>()];
            fn into_bytes(self) -> Self::Bytes {
                self.to_ne_bytes()
            }
            fn from_bytes(bytes: Self::Bytes) -> Self {
                Self::from_ne_bytes(bytes)
            }
        }
    )*};
}
option_values!(libc::c_int, u32, u64);

/// Sets an option to a plain value.
pub(crate) fn set<T: OptionValue>(socket: &impl AsFd, option: SocketOption, value: T) -> Result<()> {
    set_bytes(socket, option, value.into_bytes().as_ref())
}

/// Sets an option to the given bytes.
pub(crate) fn set_bytes(socket: &impl AsFd, option: SocketOption, value: &[u8]) -> Result<()> {
    let length = libc::socklen_t::try_from(value.len()).unwrap_or(libc::socklen_t::MAX);
    // SAFETY: the pointer and length describe `value`, which the kernel only reads, during the call.
    let answer = unsafe {
        libc::setsockopt(socket.as_fd().as_raw_fd(), option.level, option.number, value.as_ptr().cast(), length)
    };
    check(answer).map(drop).map_err(|cause| option.error("setting", cause))
}

/// Sets an option to a structure that contains pointers.
///
/// # Safety
///
/// The kernel reads what `value` points to: it has to be valid for that option during the call.
pub(crate) unsafe fn set_pointer<T>(socket: &impl AsFd, option: SocketOption, value: *const T) -> Result<()> {
    let length = libc::socklen_t::try_from(size_of::<T>()).unwrap_or(libc::socklen_t::MAX);
    let descriptor = socket.as_fd().as_raw_fd();
    // SAFETY: the caller vouches for the pointer; the length is that of its type.
    let answer = unsafe { libc::setsockopt(descriptor, option.level, option.number, value.cast(), length) };
    check(answer).map(drop).map_err(|cause| option.error("setting", cause))
}

/// Reads an option with a plain value.
pub(crate) fn get<T: OptionValue>(socket: &impl AsFd, option: SocketOption) -> Result<T> {
    let mut bytes = T::Bytes::default();
    get_bytes(socket, option, bytes.as_mut())?;
    Ok(T::from_bytes(bytes))
}

/// Reads an option into `buffer`; the answer is the part of it that the kernel filled.
pub(crate) fn get_bytes<'a>(socket: &impl AsFd, option: SocketOption, buffer: &'a mut [u8]) -> Result<&'a [u8]> {
    let mut length = libc::socklen_t::try_from(buffer.len()).unwrap_or(libc::socklen_t::MAX);
    // SAFETY: pointer and length describe `buffer`, which is ours alone; the kernel writes at most `length` bytes.
    let answer = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            option.level,
            option.number,
            buffer.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    check(answer).map_err(|cause| option.error("reading", cause))?;
    let filled = usize::try_from(length).unwrap_or(usize::MAX).min(buffer.len());
    Ok(&buffer[..filled])
}

/// An on-off option's value.
pub(crate) fn flag(on: bool) -> libc::c_int {
    libc::c_int::from(on)
}
