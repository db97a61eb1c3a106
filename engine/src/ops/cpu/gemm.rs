//! The matrix product: the one place where slices become pointers.

/// A matrix within a slice, read with a step from row to row and from column to column. Rows may
/// overlap: a window that slides over pixels is a matrix without a copy.
#[derive(Clone, Copy)]
pub(super) struct Matrix<'a> {
    data: &'a [f32],
    row: usize,
    column: usize,
}

impl<'a> Matrix<'a> {
    /// Rows `pitch` apart, each of consecutive numbers.
    pub(super) fn rows(data: &'a [f32], pitch: usize) -> Self {
        Self {
            data,
            row: pitch,
            column: 1,
        }
    }

    /// The transpose of [`Matrix::rows`].
    pub(super) fn columns(data: &'a [f32], pitch: usize) -> Self {
        Self {
            data,
            row: 1,
            column: pitch,
        }
    }

    fn holds(self, rows: usize, columns: usize) -> bool {
        let last = (rows - 1)
            .checked_mul(self.row)
            .zip((columns - 1).checked_mul(self.column))
            .and_then(|(a, b)| a.checked_add(b));
        last.is_some_and(|last| last < self.data.len())
    }
}

/// What becomes of the numbers that stand in the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Into {
    /// They are replaced.
    Replace,
    /// The product is added to them.
    Add,
}

/// `out` (m x n, rows without gaps) = `scale` * `a` (m x k) * `b` (k x n), on the calling thread.
///
/// # Panics
/// When a matrix does not fit its slice: a fault of the caller, never of a file or a user.
#[expect(
    unsafe_code,
    reason = "gemm's only entry takes pointers; every access is checked against the slices before"
)]
pub(super) fn product(
    out: &mut [f32],
    into: Into,
    (m, k, n): (usize, usize, usize),
    scale: f32,
    a: Matrix<'_>,
    b: Matrix<'_>,
) {
    if m == 0 || n == 0 || k == 0 {
        assert!(k != 0 || m == 0 || n == 0, "an empty sum has no product");
        return;
    }
    assert!(
        m.checked_mul(n).is_some_and(|all| all <= out.len()),
        "the output is too short"
    );
    assert!(a.holds(m, k) && b.holds(k, n), "an operand is too short");
    let step = usize::cast_signed;
    // SAFETY: no element outside the three slices is touched: the farthest of each was compared
    // with its slice's length above, all steps being positive. `out` is borrowed mutably, so it
    // overlaps neither operand, and its own elements are distinct: rows of n numbers, n apart.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            out.as_mut_ptr(),
            1,
            step(n),
            into == Into::Add,
            a.data.as_ptr(),
            step(a.column),
            step(a.row),
            b.data.as_ptr(),
            step(b.column),
            step(b.row),
            1.0,
            scale,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}

#[cfg(test)]
#[expect(
    clippy::cast_precision_loss,
    clippy::float_cmp,
    reason = "small integers are exact"
)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn numbers(len: usize, seed: usize) -> Vec<f32> {
        (0..len)
            .map(|i| ((i * 37 + seed * 11) % 23) as f32 - 11.0)
            .collect()
    }

    proptest! {
        #[test]
        fn product_is_the_sum_of_products(
            m in 1..9usize, k in 1..20usize, n in 1..40usize, gap in 0..5usize, overlap in any::<bool>(),
            turned in any::<bool>(), add in any::<bool>(),
        ) {
            let pitch = if overlap { 1 } else { k + gap };
            let a = numbers((m - 1) * pitch + k, 1);
            let (row, column) = if turned { (1, k + gap) } else { (n + gap, 1) };
            let b = numbers((k - 1) * row + (n - 1) * column + 1, 2);
            let mut out = numbers(m * n, 3);
            let before = out.clone();
            let right = if turned { Matrix::columns(&b, k + gap) } else { Matrix::rows(&b, n + gap) };
            let into = if add { Into::Add } else { Into::Replace };
            product(&mut out, into, (m, k, n), 0.5, Matrix::rows(&a, pitch), right);
            for i in 0..m {
                for j in 0..n {
                    let sum: f32 = (0..k).map(|x| a[i * pitch + x] * b[x * row + j * column]).sum();
                    let want = 0.5 * sum + if add { before[i * n + j] } else { 0.0 };
                    prop_assert_eq!(out[i * n + j], want, "at {} {}", i, j);
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "an operand is too short")]
    fn an_operand_that_is_too_short_is_refused() {
        product(
            &mut [0.0; 4],
            Into::Replace,
            (2, 3, 2),
            1.0,
            Matrix::rows(&[0.0; 5], 3),
            Matrix::rows(&[0.0; 6], 2),
        );
    }

    #[test]
    #[should_panic(expected = "the output is too short")]
    fn an_output_that_is_too_short_is_refused() {
        product(
            &mut [0.0; 3],
            Into::Replace,
            (2, 3, 2),
            1.0,
            Matrix::rows(&[0.0; 6], 3),
            Matrix::rows(&[0.0; 6], 2),
        );
    }
}
