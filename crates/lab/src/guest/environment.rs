//! Environment of a guest: file systems of its own, names of hosts, limits.

use std::fs::{self, File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use linerate_sys::namespace::{self, NetworkNamespace};
use linerate_sys::{describe_os_error, machine, mount};

use super::failure::GuestFailure;
use crate::job::GuestJob;
use crate::plan::NEAR;

/// Prepares the guest's environment. Returns the network of the host around it, where there is one.
pub(super) fn prepare(job: &GuestJob) -> Result<Option<NetworkNamespace>, GuestFailure> {
    let host = if job.own_kernel {
        own_file_systems(&job.writable)?;
        machine::lift_limits()?;
        // Requests from outside then arrive while programs of the guest are busy.
        machine::use_realtime_scheduling()?;
        machine::prioritise_kernel_workers();
        None
    } else {
        // The first process in /proc is still the host's.
        let host = NetworkNamespace::open(Path::new("/proc/1/ns/net")).ok();
        private_file_systems(&job.writable)?;
        machine::unshare_host_name()?;
        host
    };
    machine::set_host_name(NEAR)?;
    namespace::take_loopback_up()?;
    write_names(&job.plan.names, job.own_kernel)?;
    Ok(host)
}

/// In a kernel of its own: the host's files with an overlay in memory, which receives everything that is written,
/// except in the writable directories. Set-user-ID bits have no effect: an ordinary user's hostfs shows the programs of the
/// host's root as those of another user, whom `mount` would become.
fn own_file_systems(writable: &[PathBuf]) -> Result<(), GuestFailure> {
    // Every root has this directory, and it is still empty.
    let stage = Path::new("/proc");
    let place = |name: &str| stage.join(name);
    mount::mount("tmpfs", stage, "mode=755")?;
    for name in ["upper", "work", "root"] {
        make_directory(&place(name))?;
    }
    mount::mount("overlay", &place("root"), "lowerdir=/,upperdir=/proc/upper,workdir=/proc/work")?;
    mount::ignore_set_user_id(&place("root"))?;
    mount::mount("devtmpfs", &place("root/dev"), "")?;
    mount::change_root(&place("root"))?;
    for (kind, target, options) in [
        ("proc", "/proc", ""),
        ("sysfs", "/sys", ""),
        ("devpts", "/dev/pts", "mode=620,ptmxmode=666"),
        ("tmpfs", "/dev/shm", "mode=1777"),
        ("tmpfs", "/run", "mode=755"),
    ] {
        make_directory(Path::new(target))?;
        mount::mount(kind, Path::new(target), options)?;
    }
    // Shells and programs expect these; no other program creates them here.
    for (link, target) in [("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")] {
        let link = Path::new("/dev").join(link);
        if link.symlink_metadata().is_err() {
            symlink(format!("/proc/self/fd{target}"), &link).map_err(|cause| failure("linking", &link, &cause))?;
        }
    }
    for directory in writable {
        make_directory(directory)?;
        let options = directory
            .to_str()
            .ok_or_else(|| GuestFailure::new(format!("mounting {}: its name is not in UTF-8", directory.display())))?;
        mount::mount("hostfs", directory, options)?;
        mount::ignore_set_user_id(directory)?;
    }
    Ok(())
}

/// In namespaces of a host: procfs and sysfs show the guest's processes and devices, and `/run` is empty, so that names
/// of networks are the guest's alone.
fn private_file_systems(writable: &[PathBuf]) -> Result<(), GuestFailure> {
    mount::make_all_private()?;
    mount::mount("proc", Path::new("/proc"), "")?;
    mount::mount("sysfs", Path::new("/sys"), "")?;
    let run = Path::new("/run");
    let mut kept = Vec::new();
    for directory in writable.iter().filter(|directory| directory.starts_with(run)) {
        kept.push((directory, File::open(directory).map_err(|cause| failure("opening", directory, &cause))?));
    }
    mount::mount("tmpfs", run, "mode=755")?;
    for (directory, open) in kept {
        make_directory(directory)?;
        mount::bind(Path::new(&format!("/proc/self/fd/{}", open.as_raw_fd())), directory)?;
    }
    Ok(())
}

/// Writes the guest's `/etc/hosts`. On a host that goes on, only the guest sees the changed file.
fn write_names(names: &[String], own_kernel: bool) -> Result<(), GuestFailure> {
    let (hosts, own) = (Path::new("/etc/hosts"), Path::new("/run/hosts"));
    let mut text = "127.0.0.1 localhost\n::1 localhost\n".to_owned();
    for name in names {
        text.push_str(name);
        text.push('\n');
    }
    fs::write(own, text).map_err(|cause| failure("writing", own, &cause))?;
    if own_kernel {
        // The host may have none, or a link to a directory that is empty here.
        let _ = fs::remove_file(hosts);
        OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(hosts)
            .map_err(|cause| failure("making", hosts, &cause))?;
    }
    Ok(mount::bind(own, hosts)?)
}

fn make_directory(path: &Path) -> Result<(), GuestFailure> {
    fs::create_dir_all(path).map_err(|cause| failure("making the directory", path, &cause))
}

fn failure(verb: &str, path: &Path, cause: &std::io::Error) -> GuestFailure {
    GuestFailure::new(format!("{verb} {}: {}", path.display(), describe_os_error(cause)))
}
