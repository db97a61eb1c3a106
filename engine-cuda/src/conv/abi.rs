//! Arguments of kernels, as `kernels/*.cuh` declare them.

use candle_core::cuda_backend::cudarc::driver::DeviceRepr;

use crate::plan::Reads;

macro_rules! passed {
    ($($name:ident { $($field:ident: $kind:ty),+ $(,)? })+) => {
        $(
            #[repr(C)]
            #[derive(Clone, Copy, Debug, Default)]
            pub(super) struct $name {
                $(pub(super) $field: $kind),+
            }

            // SAFETY: plain numbers in C's layout.
            unsafe impl DeviceRepr for $name {}
        )+
    };
}

passed! {
    Source { front: u64, body: u64, front_frames: i32, height: i32, width: i32, channels: i32 }
    Maps { t: u64, h: u64, w: u64 }
    Grid {
        rows: i32, columns: i32, height: i32, width: i32, channels: i32,
        step_t: i32, step_h: i32, step_w: i32,
    }
    Places {
        t: u64, h: u64, w: u64, of_h: i32, of_w: i32, rows: i32, columns: i32,
        height: i32, width: i32, channels: i32, all: i32,
    }
    Fold { taps: [i32; 3], folded: [i32; 3], parts: [i32; 3], reads: [Reads; 3], outputs: i32, inputs: i32 }
    Window {
        taps_t: i32, taps_h: i32, taps_w: i32, step_t: i32, step_h: i32, step_w: i32,
        rows: i32, columns: i32, padded: i32, height: i32, width: i32, outputs: i32,
    }
}
