//! Giving up root.

use std::ffi::CString;
use std::io;

use crate::error::{Error, Result, check};

/// Whether this process has root's user number.
#[must_use]
pub fn is_root() -> bool {
    // SAFETY: takes nothing, cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// A user's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Account {
    user: libc::uid_t,
    group: libc::gid_t,
}

/// Becomes `user` for good, in that user's primary group alone and without the means to gain privilege through
/// set-user-id programs. Checks that there is no way back. Does nothing when this process is that user already.
pub fn drop_privileges(user: &str) -> Result<()> {
    let account = look_up(user)?;
    let operation = || format!("becoming the user {user}");
    if account.user == 0 {
        return Err(Error::refused(operation(), "that is root: name an unprivileged user, for example nobody"));
    }
    let failed = |cause| Error::system(operation(), cause).hint_on(libc::EPERM, "only root can become another user");
    if !holds(account) {
        become_account(account).map_err(failed)?;
    }
    // The kernel insists on whole words of zeros.
    let (yes, zero): (libc::c_ulong, libc::c_ulong) = (1, 0);
    // SAFETY: takes numbers and touches no memory of ours.
    check(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, yes, zero, zero, zero) }).map_err(failed)?;
    if holds(account) && !can_return() {
        return Ok(());
    }
    Err(Error::refused(operation(), "privileges could be regained afterwards: not going on"))
}

fn become_account(account: Account) -> io::Result<()> {
    let Account { user, group } = account;
    // The order matters: after the user has changed, groups cannot be changed any more.
    // SAFETY: one group is passed, and it lives through the call.
    check(unsafe { libc::setgroups(1, &raw const group) })?;
    // SAFETY: takes numbers; the C library changes all threads.
    check(unsafe { libc::setresgid(group, group, group) })?;
    // SAFETY: as above.
    check(unsafe { libc::setresuid(user, user, user) })?;
    Ok(())
}

/// Whether the real, effective and saved numbers are all this account's.
fn holds(account: Account) -> bool {
    let (mut users, mut groups) = ([0; 3], [0; 3]);
    let [real, effective, saved] = &mut users;
    // SAFETY: three distinct numbers of ours are written.
    let users_read = unsafe { libc::getresuid(real, effective, saved) };
    let [real, effective, saved] = &mut groups;
    // SAFETY: as above.
    let groups_read = unsafe { libc::getresgid(real, effective, saved) };
    users_read == 0 && groups_read == 0 && users == [account.user; 3] && groups == [account.group; 3]
}

/// Tries to become root again.
fn can_return() -> bool {
    // SAFETY: takes a number. Should it work, the caller gives up.
    unsafe { libc::setuid(0) == 0 }
}

fn look_up(user: &str) -> Result<Account> {
    let operation = || format!("looking up the user {user:?}");
    let Ok(name) = CString::new(user) else {
        return Err(Error::refused(operation(), "a name has no NUL in it"));
    };
    let mut strings = vec![0_u8; 1 << 10];
    loop {
        // SAFETY: passwd is numbers and pointers, for which zero is a value.
        let mut entry: libc::passwd = unsafe { core::mem::zeroed() };
        let mut found = core::ptr::null_mut();
        // SAFETY: all pointers are to live values of ours; the length is that of `strings`; `name` ends with a NUL.
        let answer = unsafe {
            libc::getpwnam_r(name.as_ptr(), &raw mut entry, strings.as_mut_ptr().cast(), strings.len(), &raw mut found)
        };
        match answer {
            libc::ERANGE if strings.len() < 1 << 20 => strings.resize(strings.len() * 4, 0),
            libc::EINTR => {}
            _ if !found.is_null() => return Ok(Account { user: entry.pw_uid, group: entry.pw_gid }),
            0 | libc::ENOENT | libc::ESRCH => {
                return Err(Error::refused(operation(), "there is no such user: `getent passwd` lists them"));
            }
            errno => return Err(Error::system(operation(), io::Error::from_raw_os_error(errno))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_looked_up() {
        assert_eq!(look_up("root").expect("every system has it"), Account { user: 0, group: 0 });
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
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(i32::from(!(dropped && again))) };
        }
        let mut status = 0;
        // SAFETY: `status` is ours alone; the child is ours to wait for.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "status {status:#x}");
    }
}
