//! A hint to the processor: memory that will be touched soon and was last used by another one.
//!
//! Asked for early, its way from one core to the other overlaps with other work; that way is most of what handing a
//! message to another thread costs. A hint only: it reads nothing, and elsewhere than on x86-64 it is nothing.

/// What the memory will be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// To be read.
    Read,
    /// To be written, so it is to be this core's alone.
    Write,
}

/// The size of what travels.
const LINE: usize = 64;
/// The most lines asked for: the rest of a large message follows by itself.
const MOST_LINES: usize = 4;

/// Asks for the memory of a `T`.
#[inline(always)]
pub(crate) fn prefetch<T>(place: *const T, access: Access) {
    let from = place.addr() % LINE;
    for line in 0..(from + size_of::<T>()).div_ceil(LINE).min(MOST_LINES) {
        one(place.cast::<u8>().wrapping_add(line * LINE), access);
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
fn one(place: *const u8, access: Access) {
    // SAFETY: contract of the instructions: a prefetch touches no memory and never faults, whatever the address;
    // `prefetchw` does nothing on a processor that does not know it.
    unsafe {
        match access {
            Access::Read => {
                std::arch::asm!("prefetcht0 [{}]", in(reg) place, options(nostack, preserves_flags, readonly))
            }
            Access::Write => {
                std::arch::asm!("prefetchw [{}]", in(reg) place, options(nostack, preserves_flags, readonly))
            }
        }
    }
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
#[inline(always)]
fn one(_place: *const u8, _access: Access) {}
