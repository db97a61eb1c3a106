//! MIOpen, cuDNN and the BLAS libraries.

use crate::model::VerdictId::{BlasError, MiopenDb, NoAlgorithm};

use super::Rank::{Aftermath, General, Root, Specific};
use super::Row;

pub(super) const ROWS: &[Row] = &[
    // MIOpen's search
    Row(
        r"(?i)\bno suitable algorithm (?:was )?found\b|\bno (?:suitable|applicable) (?:solver|solution|algorithm)s? (?:was |were )?found\b",
        NoAlgorithm,
        Specific,
    ),
    // not miopenStatusInternalError: that is a database that cannot be read
    Row(
        r"\bmiopenStatus(?:UnknownError|NotImplemented|UnsupportedOp)\b",
        NoAlgorithm,
        General,
    ),
    Row(
        r"(?i)\bimmediate mode fallback unsuccessful\b|\bForward Convolution cannot be executed due to incorrect params\b",
        NoAlgorithm,
        Specific,
    ),
    // PyTorch over cuDNN or MIOpen
    Row(
        r"(?i)\b(?:GET was )?unable to find an engine to execute this computation\b|\bFIND was unable to find an engine\b|\bno valid (?:convolution algorithms?|execution plans?)\b",
        NoAlgorithm,
        Specific,
    ),
    Row(
        r"\bCUDNN_STATUS_(?:NOT_SUPPORTED|ARCH_MISMATCH)\b",
        NoAlgorithm,
        General,
    ),
    // MIOpen's databases and caches; SQLite's own words
    Row(
        r"(?i)\bInternal error while accessing SQLite database\b",
        MiopenDb,
        Root,
    ),
    Row(
        r"(?i)\b(?:sqlite\w*|kern_db|miopen\w*|\w*\.(?:k|u?f|p)?db(?:\.txt)?|perf[- _]?db|find[- _]?db|kernel cache)\b.{0,120}\b(?:disk image is malformed|database (?:is |schema is )?(?:locked|corrupt)|unable to open database file|disk I/O error|locking protocol|attempt to write a readonly database|file is not a database)",
        MiopenDb,
        Root,
    ),
    Row(
        r"(?i)\bdatabase disk image is malformed\b|\bfile is not a database\b",
        MiopenDb,
        Specific,
    ),
    Row(
        r"(?i)\bmiopen\b.{0,160}\b(?:lock ?file|lockfiles?|\.ufdb|\.udb|\.ukdb|\.kdb|user[- ]?db|perf[- _]?db|find[- _]?db|kernel cache|cache file)\b.{0,120}\b(?:corrupt\w*|malformed|invalid|damaged|locked|timed? ?out|denied|cannot|can't|failed|unreadable|read-only|error)",
        MiopenDb,
        Specific,
    ),
    Row(
        r"(?i)\bmiopen\b.{0,160}\b(?:corrupt\w*|malformed|cannot (?:open|read|write|create|lock)|failed to (?:open|read|load|parse|lock|acquire)|unable to (?:open|read|lock|acquire)|timed? ?out)\b.{0,120}(?:lock ?file|\.ufdb|\.udb|\.ukdb|\.kdb|\buser[- ]?db\b|\bperf[- _]?db|\bfind[- _]?db|\bkernel cache|\bcache file|\bdatabase)",
        MiopenDb,
        Specific,
    ),
    Row(
        r"(?i)\b(?:filesystem error|filesystem_error|filesystem::\w+:)\b?.{0,160}/miopen\b|/miopen/\S*\.(?:ufdb|udb|ukdb|kdb|fdb)\S*.{0,60}\b(?:permission denied|no such file|read-only)",
        MiopenDb,
        Specific,
    ),
    Row(r"\bmiopenStatusInternalError\b", MiopenDb, Aftermath),
    // BLAS; the status of a call that ran out of memory or has no code says so itself
    Row(
        r"\b(?:CUBLAS|HIPBLAS)_STATUS_(?:INTERNAL_ERROR|EXECUTION_FAILED|NOT_SUPPORTED|INVALID_VALUE|NOT_INITIALIZED|MAPPING_ERROR|UNKNOWN|INVALID_ENUM|HANDLE_IS_NULLPTR|LICENSE_ERROR)\b",
        BlasError,
        Specific,
    ),
    Row(
        r"\b(?:CUBLAS|HIPBLAS)_STATUS_(?:ALLOC_FAILED|ARCH_MISMATCH)\b",
        BlasError,
        Specific,
    ),
    Row(
        r"\brocblas(?:lt)?_status_(?:internal_error|not_implemented|invalid_\w+|memory_error|perf_degraded|size_\w+|arch_mismatch|check_numerics_fail)\b",
        BlasError,
        Specific,
    ),
    Row(
        r"(?i)\b(?:roc|hip|cu)blas(?:lt)? (?:error|exception|failure|failed)\b",
        BlasError,
        General,
    ),
    Row(
        r"(?i)\b(?:hip|cu)blas(?:Lt)?\w*(?:Matmul|Gemm)\w*(?:\(\))?.{0,60}\b(?:failed|returned an error|error code)\b",
        BlasError,
        General,
    ),
    Row(
        r"(?i)\bTensile solution found, but exception thrown\b",
        BlasError,
        Specific,
    ),
    Row(
        r"\b(?:CUSOLVER|HIPSOLVER|CUSPARSE|HIPSPARSE|CUFFT|HIPFFT)_STATUS_(?:INTERNAL_ERROR|EXECUTION_FAILED|NOT_INITIALIZED)\b",
        BlasError,
        General,
    ),
];
