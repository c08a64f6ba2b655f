//! Giving up root.

use core::mem::MaybeUninit;
use std::ffi::CString;
use std::io;

use crate::error::{Error, Result, check};

/// True when this process has root's user number.
#[must_use]
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Number of the user whose rights this process has (`geteuid(2)`).
#[must_use]
pub fn effective_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// User and group numbers of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct UserAccount {
    user: libc::uid_t,
    group: libc::gid_t,
}

/// Becomes `user` for good, in that user's primary group alone and without the means to gain privilege through
/// set-user-id programs. Checks that root cannot be regained. Does nothing when this process is that user already.
pub fn drop_privileges(user: &str) -> Result<()> {
    let account = look_up(user)?;
    let operation = || format!("becoming the user {user}");
    if account.user == 0 {
        return Err(Error::refused(operation(), "that is root: name an unprivileged user, for example nobody"));
    }
    let failed = |cause| Error::system(operation(), cause).hint_on(libc::EPERM, "only root can become another user");
    if !is_account_in_effect(account) {
        become_account(account).map_err(failed)?;
    }
    rustix::thread::set_no_new_privs(true).map_err(|cause| failed(cause.into()))?;
    if is_account_in_effect(account) && !can_regain_root() {
        return Ok(());
    }
    Err(Error::refused(operation(), "privileges could be regained afterwards: stopping"))
}

fn become_account(account: UserAccount) -> io::Result<()> {
    let UserAccount { user, group } = account;
    // The order matters: after the user has changed, groups cannot be changed any more. The C library changes all
    // threads.
    // SAFETY: one group is passed, and it lives through the call; the others take numbers.
    unsafe {
        check(libc::setgroups(1, &raw const group))?;
        check(libc::setresgid(group, group, group))?;
        check(libc::setresuid(user, user, user)).map(drop)
    }
}

/// True when the real, effective and saved numbers are all this account's.
fn is_account_in_effect(account: UserAccount) -> bool {
    let (mut users, mut groups) = ([0; 3], [0; 3]);
    let ([user, effective_user, saved_user], [group, effective_group, saved_group]) = (&mut users, &mut groups);
    // SAFETY: both calls write three distinct numbers of ours.
    let read = unsafe {
        libc::getresuid(user, effective_user, saved_user) == 0
            && libc::getresgid(group, effective_group, saved_group) == 0
    };
    read && users == [account.user; 3] && groups == [account.group; 3]
}

/// Tries to become root again.
fn can_regain_root() -> bool {
    // SAFETY: takes a number. Should it work, the caller gives up.
    unsafe { libc::setuid(0) == 0 }
}

fn look_up(user: &str) -> Result<UserAccount> {
    let operation = || format!("looking up the user {user:?}");
    let Ok(name) = CString::new(user) else {
        return Err(Error::refused(operation(), "a name has no NUL in it"));
    };
    let mut strings = vec![0_u8; 1 << 10];
    loop {
        let (mut entry, mut found) = (MaybeUninit::<libc::passwd>::zeroed(), core::ptr::null_mut());
        // SAFETY: all pointers are to live values of ours; the length is that of `strings`; `name` ends with a NUL.
        // `found` is null, or to `entry`, which is then filled.
        let (answer, account) = unsafe {
            let (place, length) = (strings.as_mut_ptr().cast(), strings.len());
            let answer = libc::getpwnam_r(name.as_ptr(), entry.as_mut_ptr(), place, length, &raw mut found);
            (answer, found.as_ref().map(|entry| UserAccount { user: entry.pw_uid, group: entry.pw_gid }))
        };
        match (answer, account) {
            (libc::ERANGE, _) if strings.len() < 1 << 20 => strings.resize(strings.len() * 4, 0),
            (libc::EINTR, _) => {}
            (_, Some(account)) => return Ok(account),
            (0 | libc::ENOENT | libc::ESRCH, None) => {
                return Err(Error::refused(operation(), "there is no such user: `getent passwd` lists them"));
            }
            (errno, None) => return Err(Error::system(operation(), io::Error::from_raw_os_error(errno))),
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::{Pid, WaitOptions, waitpid};

    use super::*;
    use crate::process::exit_at_once;

    #[test]
    fn users_are_looked_up() {
        assert_eq!(look_up("root").expect("every system has it"), UserAccount { user: 0, group: 0 });
        let error = look_up("no-such-user-here").expect_err("not there");
        assert_eq!(
            error.to_string(),
            "looking up the user \"no-such-user-here\": there is no such user: `getent passwd` lists them"
        );
        assert!(look_up("a\0b").is_err());
    }

    #[test]
    fn root_is_not_a_way_to_drop_privileges() {
        let error = drop_privileges("root").expect_err("refused");
        assert!(error.to_string().contains("name an unprivileged user"), "{error}");
    }

    /// The change is for good, so it is tried in a child process.
    #[test]
    #[ignore = "needs root: changes the user of a child process"]
    fn no_way_back_to_root() {
        assert!(is_root(), "run this test as root");
        // SAFETY: the child only makes system calls and ends; it takes no lock that another thread could hold, except
        // the allocator's, which the C library keeps usable after a fork.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let dropped = drop_privileges("nobody").is_ok() && !is_root() && std::fs::read("/etc/shadow").is_err();
            let again = drop_privileges("nobody").is_ok();
            exit_at_once(i32::from(!(dropped && again)));
        }
        let (_, status) = waitpid(Pid::from_raw(child), WaitOptions::empty()).expect("ours").expect("it has ended");
        assert_eq!(status.exit_status(), Some(0));
    }
}
