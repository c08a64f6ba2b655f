//! Mounting file systems (mount(2)).

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::error::{Error, Result, check};

/// Mounts a new file system of this kind (`proc`, `tmpfs`, `overlay`, …) with these options of its own.
pub fn mount(kind: &str, target: &Path, options: &str) -> Result<()> {
    let failed = |cause| {
        Error::system(format!("mounting {kind} on {}", target.display()), cause)
            .hint_on(libc::ENODEV, "this kernel has no such file system")
            .hint_on(libc::EPERM, "mounting needs root (CAP_SYS_ADMIN)")
    };
    call(Some(kind), Some(kind), target, 0, Some(options)).map_err(failed)
}

/// Makes what is at `source` appear at `target` too, which exists.
pub fn bind(source: &Path, target: &Path) -> Result<()> {
    let failed = |cause| Error::system(format!("binding {} to {}", source.display(), target.display()), cause);
    let source = source.to_str().ok_or_else(|| failed(io::ErrorKind::InvalidInput.into()))?;
    call(Some(source), None, target, libc::MS_BIND, None).map_err(failed)
}

/// From now on nothing that is mounted in this mount namespace appears in others, nor the other way round.
pub fn make_all_private() -> Result<()> {
    let failed = |cause| {
        Error::system("making all mounts private", cause).hint_on(libc::EPERM, "mounting needs root (CAP_SYS_ADMIN)")
    };
    call(None, None, Path::new("/"), libc::MS_REC | libc::MS_PRIVATE, None).map_err(failed)
}

/// Makes the file system that is mounted at `root` the root of this mount namespace and of this process; the old root is
/// gone.
pub fn change_root(root: &Path) -> Result<()> {
    let failed = |cause| Error::system(format!("making {} the root", root.display()), cause);
    std::env::set_current_dir(root).map_err(failed)?;
    // SAFETY: both paths are constants that end with a NUL. The old root is stacked upon the new one (pivot_root(2),
    // NOTES), and taken away below.
    let answer = unsafe { libc::syscall(libc::SYS_pivot_root, c".".as_ptr(), c".".as_ptr()) };
    if answer == -1 {
        return Err(failed(io::Error::last_os_error()));
    }
    // SAFETY: the path is a constant that ends with a NUL.
    check(unsafe { libc::umount2(c".".as_ptr(), libc::MNT_DETACH) }).map_err(failed)?;
    std::env::set_current_dir("/").map_err(failed)
}

fn call(
    source: Option<&str>,
    kind: Option<&str>,
    target: &Path,
    flags: libc::c_ulong,
    options: Option<&str>,
) -> io::Result<()> {
    let text = |words: Option<&str>| words.map(CString::new).transpose();
    let (source, kind, options) = (text(source)?, text(kind)?, text(options)?);
    let target = CString::new(target.as_os_str().as_bytes())?;
    let pointer = |text: &Option<CString>| text.as_ref().map_or(core::ptr::null(), |text| text.as_ptr());
    // SAFETY: each pointer is null, which the kernel allows here, or to a text that ends with a NUL and lives through
    // the call.
    check(unsafe { libc::mount(pointer(&source), target.as_ptr(), pointer(&kind), flags, pointer(&options).cast()) })
        .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_mounted_says_where_and_why() {
        let error = mount("tmpfs", Path::new("/no/such/place"), "").expect_err("nowhere");
        assert!(error.to_string().starts_with("mounting tmpfs on /no/such/place: "), "{error}");
        assert!(bind(Path::new("a\0b"), Path::new("/no/such/place")).is_err());
    }

    #[test]
    #[ignore = "needs root: mounts in a mount namespace of its own"]
    fn a_private_mount_is_seen_here_only() {
        let directory = std::env::temp_dir().join(format!("linerate-mount-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("temporary directory");
        std::thread::scope(|scope| {
            let inside = scope.spawn(|| {
                // SAFETY: takes numbers; only this thread is affected, and it ends here.
                check(unsafe { libc::unshare(libc::CLONE_FS | libc::CLONE_NEWNS) }).expect("root");
                make_all_private().expect("private");
                mount("tmpfs", &directory, "size=64k").expect("mounted");
                std::fs::write(directory.join("file"), "words").expect("written");
                let target = directory.join("target");
                std::fs::write(&target, "").expect("written");
                bind(&directory.join("file"), &target).expect("bound");
                std::fs::read_to_string(target).expect("readable")
            });
            assert_eq!(inside.join().expect("no panic"), "words");
        });
        assert_eq!(std::fs::read_dir(&directory).expect("there").count(), 0);
        std::fs::remove_dir(&directory).expect("nothing is mounted here");
    }
}
