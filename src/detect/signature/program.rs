//! Errors of the program and of what lies around it: modules, ports, files, precisions,
//! places of tensors.

use crate::model::VerdictId::{
    CorruptModel, DeviceMismatch, DiskFull, DtypeMismatch, MissingDependency, NanOutput, PortInUse,
};

use super::Rank::{General, Specific};
use super::Row;

pub(super) const ROWS: &[Row] = &[
    // asyncio, uvicorn, Gradio, the C library
    Row(
        r"(?i)\baddress already in use\b|\[Errno (?:98|10048|48)\]",
        PortInUse,
        Specific,
    ),
    Row(
        r"(?i)\bCannot find empty port in range\b|\bport \d+ is (?:already )?in use\b|\bEADDRINUSE\b",
        PortInUse,
        Specific,
    ),
    // Python, the dynamic linker, transformers and diffusers
    Row(
        r"\bModuleNotFoundError: |\bNo module named ['\x22]?[\w.]+",
        MissingDependency,
        General,
    ),
    Row(r"\bImportError: ", MissingDependency, General),
    Row(
        r"(?i)\bcannot open shared object file\b|\berror while loading shared libraries\b",
        MissingDependency,
        Specific,
    ),
    Row(
        r"(?:^|[\s\]:])(?:\w+ )?requires the (?:following packages|[\w.-]+ (?:library|package|module))\b.{0,60}\b(?:not found|not installed|was not found|in your environment)",
        MissingDependency,
        Specific,
    ),
    Row(
        r"\bundefined symbol: \w+|\bversion `\w+(?:_[\d.]+)?' not found\b",
        MissingDependency,
        Specific,
    ),
    // programs that a job calls, by the names that such jobs call
    Row(
        r"\bNo such file or directory: '(?:\S*/)?(?:ffmpeg|ffprobe|git|hipcc|nvcc|ninja|gcc|cc|c\+\+|g\+\+|ld)'",
        MissingDependency,
        Specific,
    ),
    // PyTorch's compiler and its extensions
    Row(
        r"\bTritonMissing\b|(?i:\bcannot find a working \w+ installation\b)|\b(?:CUDA|ROCM|HIP)_HOME environment variable is not set\b",
        MissingDependency,
        Specific,
    ),
    Row(
        r"\bPackageNotFoundError\b|\bDistributionNotFound\b",
        MissingDependency,
        General,
    ),
    // PyTorch: precision
    Row(
        r"(?i)\bexpected (?:scalar type|m1 and m2|mat1 and mat2|query, key,? and value|self and \w+|tensor\w*|all tensors|both inputs)\b.{0,40}\b(?:dtype|but found|but got|Half|Float|Double|BFloat16)\b",
        DtypeMismatch,
        General,
    ),
    Row(
        r"(?i)\bexpected (?:scalar type|dtype|object of (?:scalar type|type)) ?\S{0,20} ?(?:Half|Float|Double|BFloat16|Float8\w*|Byte|Long)\b",
        DtypeMismatch,
        Specific,
    ),
    Row(
        r"(?i)\bmat1 and mat2 (?:must|to) have the same dtype\b|\bm(?:at)?1 and m(?:at)?2 to have the same dtype\b",
        DtypeMismatch,
        Specific,
    ),
    Row(
        r"(?i)\b(?:input|query|key|value|self|tensor\w*)s?\b.{0,60}\b(?:must|should|to) have the same (?:dtype|data type)\b",
        DtypeMismatch,
        Specific,
    ),
    Row(
        r"\b(?:Input type|input type) \((?:struct )?(?:c10::\w+|float|double|[\w.]+Tensor)\) and (?:weight|bias) type \((?:struct )?(?:c10::\w+|float|double)\) should be the same",
        DtypeMismatch,
        Specific,
    ),
    Row(
        r"\bInput type \(torch\.(?:cuda\.)?\w+Tensor\) and (?:weight|bias) type \(torch\.(?:cuda\.)?\w+Tensor\) should be the same",
        DtypeMismatch,
        General,
    ),
    Row(
        r"\b(?:Input|input) type \(CUDA\w+Type\) and (?:weight|bias) type \(CUDA\w+Type\) should be the same",
        DtypeMismatch,
        Specific,
    ),
    Row(
        r#""\w+" not implemented for '(?:Half|BFloat16|Float8_\w+|Float)'"#,
        DtypeMismatch,
        Specific,
    ),
    Row(
        r"(?i)\b(?:index_put_|scatter\w*|Index put) ?(?:\(\): )?requires the source and destination dtypes match\b|\bself\.dtype\b.{0,30}\bdo(?:es)? not match\b|\bFound dtype \w+ but expected \w+",
        DtypeMismatch,
        Specific,
    ),
    // PyTorch: place
    Row(
        r"(?i)\bExpected all tensors to be on the same device\b",
        DeviceMismatch,
        Specific,
    ),
    Row(
        r"(?i)\bExpected (?:a|an) '?(?:cuda|cpu|hip)(?::\d+)?'? (?:device type|generator)\b.{0,40}\bbut (?:found|got)\b",
        DeviceMismatch,
        Specific,
    ),
    Row(
        r"(?i)\bCannot generate a (?:cpu|cuda|hip) tensor from a generator of type\b",
        DeviceMismatch,
        Specific,
    ),
    Row(
        r"\bInput type \(torch\.cuda\.\w+Tensor\) and (?:weight|bias) type \(torch\.[A-Z]\w*Tensor\) should be the same|\bInput type \(torch\.[A-Z]\w*Tensor\) and (?:weight|bias) type \(torch\.cuda\.\w+Tensor\) should be the same",
        DeviceMismatch,
        Specific,
    ),
    Row(
        r"(?i)\b(?:tensor|argument|input|index|indices|weight)\w*\b.{0,60}\bshould be (?:either )?on (?:the same device|cpu|cuda)|\bon different devices\b|\bTensor on device \S+ is not on the expected device\b",
        DeviceMismatch,
        Specific,
    ),
    Row(
        r"(?i)\bInput, output and indices must be on the current device\b|\bset the storage of a tensor on device \S+ to a storage on different device\b",
        DeviceMismatch,
        Specific,
    ),
    Row(
        r"(?i)\bPlaceholder storage has not been allocated\b|\bTensor for argument #\d+ .{0,40}is on (?:CPU|GPU|cuda|hip)\b.{0,30}\bexpected\b|\bCannot copy out of meta tensor\b|\bPointer argument .{0,30}cannot be accessed from Triton \(cpu tensor\?\)",
        DeviceMismatch,
        Specific,
    ),
    // safetensors, PyTorch, GGUF, zip
    Row(
        r"\b(?:MetadataIncompleteBuffer|HeaderTooLarge|HeaderTooSmall|InvalidHeaderLength|InvalidHeaderStart|InvalidHeaderDeserialization|InvalidHeader|InvalidTensorView|TensorInvalidInfo|InvalidOffset)\b",
        CorruptModel,
        Specific,
    ),
    Row(
        r"(?i)\bError while deserializing header\b|\bincomplete metadata, file not fully covered\b|\bsafetensors file is (?:corrupt|invalid|incomplete)",
        CorruptModel,
        Specific,
    ),
    Row(
        r"(?i)\bPytorchStreamReader failed\b|\bfile in archive is not in a subdirectory\b|\bfailed finding central directory\b|\binvalid magic number; corrupt file\b|\bunexpected EOF, expected \d+ more bytes\b|\bunexpected end of file\b|\bRan out of input\b|\bpickle data was truncated\b|\bUnpicklingError\b",
        CorruptModel,
        Specific,
    ),
    Row(
        r"(?i)\b(?:checkpoint|model|weights?|shard|safetensors|gguf|\.ckpt|\.pth?)\b.{0,80}\b(?:is|seems|appears|may be|file) (?:to be )?(?:corrupt(?:ed)?|truncated|damaged|incomplete)\b",
        CorruptModel,
        Specific,
    ),
    Row(
        r"(?i)\b(?:GGUF magic|magic) (?:is )?invalid\b|\bnot a gguf file\b|\b(?:hash|checksum|sha256)\b.{0,40}\b(?:mismatch|does not match)\b|\bBadZipFile\b|\bConsistency check failed: file should be of size\b",
        CorruptModel,
        Specific,
    ),
    // the C library, safetensors, SQLite, ffmpeg; /dev/shm counts: it is a full disk to
    // whoever writes there, and the cure (room) is the same
    Row(
        r"(?i)\bNo space left on device\b|\bENOSPC\b|\[Errno 28\]|\bDisk quota exceeded\b|\[Errno 122\]|\bFile too large \(os error 27\)|\[Errno 27\]",
        DiskFull,
        Specific,
    ),
    Row(
        r"(?i)\bdatabase or disk is full\b|\bnot enough (?:free )?(?:disk )?space (?:left |available )?(?:on|to)\b",
        DiskFull,
        Specific,
    ),
    // NumPy (ComfyUI, diffusers), A1111 and its forks, PyTorch
    // a training: kohya's and diffusers' bars
    Row(r"(?i)\b\w*loss\W{0,3}[=:] ?-?nan\b", NanOutput, Specific),
    Row(
        r"(?i)\binvalid value encountered in cast\b",
        NanOutput,
        General,
    ),
    Row(
        r"(?i)\bA tensor with (?:all )?NaNs was produced\b|\bNansException\b|\bmodified VAE .{0,20}NaN",
        NanOutput,
        Specific,
    ),
    Row(
        r"(?i)\b(?:latents?|samples?|output|image|frames?|pixels?|decoded|decoder|noise|video|tensor|vae)\b.{0,50}\b(?:contains?|has|have|is|are|produced|full of|all)\b.{0,20}\bnans?\b",
        NanOutput,
        Specific,
    ),
    Row(
        r"(?i)\bNaNs? (?:detected|found|encountered|values?)\b.{0,40}\b(?:latents?|output|image|decod\w*|vae|unet|samples?|tensor)\b|\bprobability tensor contains either `inf`, `nan`",
        NanOutput,
        Specific,
    ),
    Row(
        r"(?i)\b(?:output|image|result|frames?|video)s? (?:is|are|was|were) (?:all |completely |entirely )?black\b",
        NanOutput,
        Specific,
    ),
];
