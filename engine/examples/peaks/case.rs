//! A decode as it is named on the command line.

use std::error::Error;

use framepack_engine::vae::{Run, Strategy, Tiling};

/// `TxHxW` of latents and then, each behind a comma, any of `tile=LENGTH/STRIDE`, `frames=LENGTH/STRIDE` (pixels and frames of the video), `exact=N`
/// (N of so many bytes each).
pub(crate) fn case(text: &str, unit: u64) -> Result<([usize; 3], Strategy), Box<dyn Error>> {
    let numbers = |text: &str, separator: char| -> Result<Vec<usize>, Box<dyn Error>> {
        Ok(text
            .split(separator)
            .map(str::parse)
            .collect::<Result<_, _>>()?)
    };
    let run = |text: &str| -> Result<Run, Box<dyn Error>> {
        match numbers(text, '/')?.as_slice() {
            [length, stride] => Ok(Run {
                length: *length,
                stride: *stride,
            }),
            _ => Err("LENGTH/STRIDE is needed".into()),
        }
    };
    let mut parts = text.split(',');
    let size = numbers(parts.next().unwrap_or_default(), 'x')?;
    let size = <[usize; 3]>::try_from(size).map_err(|other| format!("{other:?} is no TxHxW"))?;
    let (mut tiling, mut exact) = (Tiling::default(), None);
    for part in parts {
        match part.split_once('=').ok_or("KEY=VALUE is needed")? {
            ("tile", value) => tiling.space = Some(run(value)?),
            ("frames", value) => tiling.time = Some(run(value)?),
            ("exact", value) => exact = Some(value.parse::<u64>()? * unit),
            (other, _) => return Err(format!("{other} is not known").into()),
        }
    }
    let way = exact.map_or(Strategy::Tiled(tiling), |budget| Strategy::Exact { budget });
    Ok((size, way))
}
