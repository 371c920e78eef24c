//! A clock that a scene sets. Loaded ahead of the C library, it tells the wall clock of a real process as many seconds ahead as
//! stand in the file `PI_GRAFT_TEST_CLOCK`. The clock that only runs is left alone, as the system leaves it when the wall clock is
//! set. Compiled by the scene.

use std::ffi::{c_char, c_int, c_void};

const CLOCK_REALTIME: c_int = 0;
/// The next one in the order in which libraries were loaded.
const RTLD_NEXT: *mut c_void = -1isize as *mut c_void;

#[repr(C)]
pub struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}

type Gettime = unsafe extern "C" fn(c_int, *mut Timespec) -> c_int;

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_gettime(clock: c_int, time: *mut Timespec) -> c_int {
    // SAFETY: the C library has a function of this name and type, and the caller gives a place for the time.
    unsafe {
        let real: Gettime = std::mem::transmute(dlsym(RTLD_NEXT, c"clock_gettime".as_ptr()));
        let done = real(clock, time);
        if clock == CLOCK_REALTIME && done == 0 {
            (*time).seconds += ahead();
        }
        done
    }
}

fn ahead() -> i64 {
    let file = std::env::var_os("PI_GRAFT_TEST_CLOCK");
    file.and_then(|file| std::fs::read_to_string(file).ok()?.trim().parse().ok()).unwrap_or(0)
}
