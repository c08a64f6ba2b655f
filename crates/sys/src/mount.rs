//! Mounting file systems (mount(2)).

use std::ffi::CString;
use std::path::Path;

use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount_bind, mount_change, mount_remount, unmount,
};
use rustix::process::pivot_root;

use crate::error::{Error, Result};

/// Mounts a new file system of this kind (`proc`, `tmpfs`, `overlay`, …) with these options of its own.
pub fn mount(kind: &str, target: &Path, options: &str) -> Result<()> {
    let failed = |cause| {
        Error::system(format!("mounting {kind} on {}", target.display()), cause)
            .hint_on(libc::ENODEV, "this kernel has no such file system")
            .hint_on(libc::EPERM, "mounting needs root (CAP_SYS_ADMIN)")
    };
    let options = CString::new(options).map_err(|_| failed(Errno::INVAL))?;
    rustix::mount::mount(kind, target, kind, MountFlags::empty(), options.as_c_str()).map_err(failed)
}

/// Bind-mounts `source` at `target`, which exists.
pub fn bind(source: &Path, target: &Path) -> Result<()> {
    let failed = |cause| Error::system(format!("binding {} to {}", source.display(), target.display()), cause);
    mount_bind(source, target).map_err(failed)
}

/// Makes the mount at `target` ignore set-user-ID bits and capabilities of files (`MS_NOSUID`).
pub fn ignore_set_user_id(target: &Path) -> Result<()> {
    let failed = |cause| Error::system(format!("remounting {} with nosuid", target.display()), cause);
    mount_remount(target, MountFlags::BIND | MountFlags::NOSUID, c"").map_err(failed)
}

/// Makes all mounts of this mount namespace private: mounts no longer propagate to or from others.
pub fn make_all_private() -> Result<()> {
    let failed = |cause| {
        Error::system("making all mounts private", cause).hint_on(libc::EPERM, "mounting needs root (CAP_SYS_ADMIN)")
    };
    mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE).map_err(failed)
}

/// Makes the file system that is mounted at `root` the root of this mount namespace and of this process; the old root
/// is detached.
pub fn change_root(root: &Path) -> Result<()> {
    let failed = |cause| Error::system(format!("making {} the root", root.display()), cause);
    std::env::set_current_dir(root).map_err(failed)?;
    // The old root is stacked upon the new one (pivot_root(2), NOTES), and unmounted.
    pivot_root(".", ".").and_then(|()| unmount(".", UnmountFlags::DETACH)).map_err(|cause| failed(cause.into()))?;
    std::env::set_current_dir("/").map_err(failed)
}

#[cfg(test)]
mod tests {
    use rustix::thread::UnshareFlags;

    use super::*;
    use crate::namespace;

    #[test]
    fn mount_errors_have_the_target_and_the_reason() {
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
                namespace::unshare(UnshareFlags::FS | UnshareFlags::NEWNS).expect("root");
                make_all_private().expect("private");
                mount("tmpfs", &directory, "size=64k").expect("mounted");
                std::fs::write(directory.join("file"), "text").expect("written");
                let target = directory.join("target");
                std::fs::write(&target, "").expect("written");
                bind(&directory.join("file"), &target).expect("bound");
                ignore_set_user_id(&target).expect("bound before");
                let mounts = std::fs::read_to_string("/proc/thread-self/mountinfo").expect("procfs");
                assert!(mounts.lines().any(|line| line.contains("/target rw,nosuid")), "{mounts}");
                std::fs::read_to_string(target).expect("readable")
            });
            assert_eq!(inside.join().expect("no panic"), "text");
        });
        assert_eq!(std::fs::read_dir(&directory).expect("there").count(), 0);
        std::fs::remove_dir(&directory).expect("nothing is mounted here");
    }
}
