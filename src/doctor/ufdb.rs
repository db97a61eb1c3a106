//! MIOpen's user find-db in text form: which solver was fastest for which convolution.
//!
//! A line is `KEY=SOLVER:MS,WORKSPACE,ALGORITHM;SOLVER:…`. Before ROCm 6.0 it was
//! `KEY=ALGORITHM:SOLVER,MS,WORKSPACE,…;…`. (MIOpen's `src/db_record.cpp` and
//! `src/include/miopen/perf_field.hpp`.)

/// Solvers that compute each output from its definition, without tiles.
const NAIVE: &str = "ConvDirectNaiveConv";
/// A line longer than this is no record.
const LONGEST: usize = 1 << 16;

/// The fastest solver of a record.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Best<'t> {
    /// Shapes, layout, type and direction.
    pub(super) key: &'t str,
    /// Name of the solver.
    pub(super) solver: &'t str,
    /// Milliseconds of one launch.
    pub(super) ms: f64,
}

impl Best<'_> {
    /// Whether it is the naive kernel.
    pub(super) fn is_naive(&self) -> bool {
        self.solver.starts_with(NAIVE)
    }
}

/// The fastest entry of a line; `None`: the line is no record.
pub(super) fn best(line: &str) -> Option<Best<'_>> {
    if line.len() > LONGEST {
        return None;
    }
    let (key, entries) = line.trim().split_once('=')?;
    let key = key.trim();
    // the first part of every key is the number of channels
    if !key.starts_with(|c: char| c.is_ascii_digit()) || !key.contains('-') {
        return None;
    }
    let timed = entries.split(';').filter_map(entry);
    let (solver, ms) = timed.min_by(|a, b| a.1.total_cmp(&b.1))?;
    Some(Best { key, solver, ms })
}

/// Solver and milliseconds of one entry.
fn entry(text: &str) -> Option<(&str, f64)> {
    let (name, rest) = text.trim().split_once(':')?;
    let mut values = rest.split(',').map(str::trim);
    let first = values.next()?;
    let (solver, ms) = match first.parse::<f64>() {
        Ok(ms) => (name, ms),
        Err(_older_form) => (first, values.next()?.parse().ok()?),
    };
    (!solver.is_empty() && ms.is_finite() && ms >= 0.0).then_some((solver, ms))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KEY: &str = "96-6-482-834-3x3x3-96-4-480-832-1-0x0x0-1x1x1-1x1x1-0-NCDHW-FP16-F";

    #[test]
    fn the_fastest_counts_wherever_it_stands() {
        let line = format!(
            "{KEY}=ConvDirectNaiveConvFwd:8123.4,0,miopenConvolutionFwdAlgoDirect;\
             GemmFwdRest:41.2,1509949440,miopenConvolutionFwdAlgoGEMM"
        );
        let found = best(&line).unwrap();
        assert_eq!((found.solver, found.ms), ("GemmFwdRest", 41.2));
        assert_eq!(found.key, KEY);
        assert!(!found.is_naive());
        let only =
            format!("{KEY}=ConvDirectNaiveConvFwd:8123.4,0,miopenConvolutionFwdAlgoDirect\n");
        assert!(best(&only).unwrap().is_naive());
    }

    #[test]
    fn the_older_form_is_read() {
        let line = format!("{KEY}=miopenConvolutionFwdAlgoDirect:ConvDirectNaiveConvFwd,12.5,0,x");
        let found = best(&line).unwrap();
        assert_eq!((found.solver, found.ms), ("ConvDirectNaiveConvFwd", 12.5));
    }

    #[test]
    fn what_is_no_record_is_none() {
        for line in [
            "",
            "key",
            "=x:1",
            "no-digit=Gemm:1,0,a",
            "96-6=",
            "96-6=Gemm",
            "96-6=Gemm:nan,0,a",
            "96-6=Gemm:-1,0,a",
            "96=Gemm:1,0,a",
        ] {
            assert_eq!(best(line), None, "{line}");
        }
        assert_eq!(
            best(&format!("96-6=Gemm:1,0,{}", "a".repeat(LONGEST))),
            None
        );
    }

    proptest! {
        #[test]
        fn any_line_is_survived(line in "\\PC{0,200}") {
            if let Some(found) = best(&line) {
                prop_assert!(found.ms >= 0.0 && line.contains(found.solver));
            }
        }

        #[test]
        fn the_smallest_time_wins(times in prop::collection::vec(0.0f64..1e6, 1..9)) {
            let entries: Vec<_> = times.iter().enumerate()
                .map(|(i, t)| format!("Solver{i}:{t},0,algo")).collect();
            let line = format!("{KEY}={}", entries.join(";"));
            let least = times.iter().copied().fold(f64::INFINITY, f64::min);
            prop_assert_eq!(best(&line).unwrap().ms.to_bits(), least.to_bits());
        }

        #[test]
        fn a_cut_line_is_survived(at in 0usize..180) {
            let line = format!("{KEY}=GemmFwdRest:41.2,150,miopenConvolutionFwdAlgoGEMM;ConvDirectNaiveConvFwd:8.4,0,x");
            let _ = best(&line[..at.min(line.len())]);
        }
    }
}
