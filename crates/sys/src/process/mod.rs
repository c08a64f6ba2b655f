//! This process: detaching it, where it runs, what it may do, what it uses.

mod affinity;
mod daemon;
mod ending;
mod memory;
mod other;
mod privileges;
mod time_slice;

pub use affinity::{current_cpu, pin_process, pin_thread};
pub(crate) use daemon::exit_at_once;
pub use daemon::{PidFile, daemonize, write_pid_file};
pub(crate) use ending::ending;
pub use memory::{limit_malloc_arenas, open_file_limit, raise_open_file_limit, release_free_memory, resident_memory};
pub use other::{ProcessIdentity, own_program};
pub use privileges::{drop_privileges, effective_user, is_root};
pub use time_slice::TimeSliceChange;
