//! cuDNN's engines for one convolution, timed.

use std::sync::{Arc, PoisonError};

use candle_core::cuda_backend::cudarc::driver::sys::CUevent_flags;

use crate::Cuda;
use crate::dnn::{Data, Shape, Sums};
use crate::error::{Result, failed, wrap};
use crate::memory::{Buffer, long, size_of};

/// Engines that are tried.
const MOST: usize = 12;

/// Runs of which the mean is taken.
const RUNS: u32 = 3;

/// A line for each engine and kind of sums.
pub(crate) fn engines(cuda: &Cuda, shape: Shape) -> Result<Vec<String>> {
    let Some(dnn) = &cuda.dnn else {
        return failed("cuDNN is not there");
    };
    let dnn = dnn.lock().unwrap_or_else(PoisonError::into_inner);
    let stream = cuda.kernels.stream();
    let bytes = size_of(shape.dtype);
    let buffer = |numbers: usize, bytes: usize| Buffer::new(numbers * bytes, stream);
    let (taps, out) = (
        shape.taps.iter().product::<usize>(),
        shape.output().iter().product::<usize>(),
    );
    let input = buffer(shape.input.iter().product::<usize>() * shape.inputs, bytes)?;
    let weight = buffer(taps * shape.inputs * shape.outputs, bytes)?;
    let (output, add) = (
        buffer(out * shape.outputs, bytes)?,
        buffer(out * shape.outputs, bytes)?,
    );
    let bias = buffer(shape.outputs, 4)?;
    let data = Data {
        input: input.address(),
        weight: weight.address(),
        bias: bias.address(),
        add: add.address(),
        output: output.address(),
    };
    // random numbers: zeros are faster than life
    for (buffer, numbers) in [
        (&input, shape.input.iter().product::<usize>() * shape.inputs),
        (&weight, taps * shape.inputs * shape.outputs),
    ] {
        let launch = crate::memory::Launch::over(numbers);
        cuda.kernels.launch(
            "scatter",
            shape.dtype,
            launch,
            &(buffer.address(), 0.05f32, long(numbers), 1i32),
        )?;
    }
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    let operations = 2.0 * (out * taps * shape.inputs * shape.outputs) as f64;
    let mut lines = Vec::new();
    for (bias, add) in [(false, false), (true, false), (true, true)] {
        let sums = Sums { bias, add };
        let plans = dnn.candidates(shape, sums, usize::MAX, MOST)?;
        if plans.is_empty() {
            lines.push(format!("{sums:?}: none"));
        }
        for plan in plans.into_iter().map(Arc::new) {
            let workspace = Buffer::new(plan.workspace, stream)?;
            dnn.run(&plan, sums, data, workspace.address())?;
            let event = || {
                stream
                    .record_event(Some(CUevent_flags::CU_EVENT_DEFAULT))
                    .map_err(wrap)
            };
            let start = event()?;
            for _ in 0..RUNS {
                dnn.run(&plan, sums, data, workspace.address())?;
            }
            let end = event()?;
            let ms = f64::from(start.elapsed_ms(&end).map_err(wrap)?) / f64::from(RUNS);
            lines.push(format!(
                "bias {bias} add {add} engine {:4}: {ms:8.3} ms {:6.1} TFLOP/s workspace {:6} MiB",
                plan.engine,
                operations / ms / 1e9,
                plan.workspace.div_ceil(1 << 20)
            ));
        }
    }
    Ok(lines)
}
