use std::collections::HashMap;

use proptest::prelude::*;
use safetensors::tensor::{Dtype, TensorView};

use super::folder::{INDEX, SINGLE};
use super::*;

fn file(tensors: &[(&str, Dtype, Vec<usize>, Vec<u8>)]) -> Vec<u8> {
    let views: HashMap<&str, TensorView<'_>> = tensors
        .iter()
        .map(|(name, dtype, shape, bytes)| {
            (
                *name,
                TensorView::new(*dtype, shape.clone(), bytes).unwrap(),
            )
        })
        .collect();
    safetensors::serialize(&views, None).unwrap()
}

fn small() -> Vec<u8> {
    let numbers = [1.0f32, -2.5, 3.0, 0.125, -0.0, 65504.0];
    file(&[
        (
            "a",
            Dtype::F32,
            vec![2, 3],
            numbers.iter().flat_map(|x| x.to_le_bytes()).collect(),
        ),
        (
            "b",
            Dtype::F16,
            vec![6],
            numbers
                .iter()
                .flat_map(|x| half::f16::from_f32(*x).to_le_bytes())
                .collect(),
        ),
        (
            "c",
            Dtype::BF16,
            vec![4],
            numbers[..4]
                .iter()
                .flat_map(|x| half::bf16::from_f32(*x).to_le_bytes())
                .collect(),
        ),
        ("d", Dtype::I64, vec![1], vec![0; 8]),
    ])
}

fn write(bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(SINGLE);
    std::fs::write(&path, bytes).unwrap();
    (folder, path)
}

fn refused(bytes: &[u8]) -> String {
    let (_folder, path) = write(bytes);
    Weights::open(&path).unwrap_err().to_string()
}

#[test]
fn every_precision_is_read_as_it_was_written() {
    let (folder, _) = write(&small());
    let weights = Weights::open(folder.path()).unwrap();
    let get = |name: &str, shape: &[usize]| -> Vec<f32> {
        weights
            .get(name, shape, &Device::Cpu)
            .unwrap()
            .flatten_all()
            .unwrap()
            .to_vec1()
            .unwrap()
    };
    assert_eq!(get("a", &[2, 3]), [1.0, -2.5, 3.0, 0.125, 0.0, 65504.0]);
    assert_eq!(get("b", &[6]), [1.0, -2.5, 3.0, 0.125, 0.0, 65504.0]);
    assert_eq!(get("c", &[4]), [1.0, -2.5, 3.0, 0.125]);
    assert_eq!(weights.names().collect::<Vec<_>>(), ["a", "b", "c", "d"]);
}

#[test]
fn errors_name_file_and_tensor() {
    let (folder, path) = write(&small());
    let weights = Weights::open(folder.path()).unwrap();
    let say = |name: &str, shape: &[usize]| {
        weights
            .get(name, shape, &Device::Cpu)
            .unwrap_err()
            .to_string()
    };
    let path = path.display();
    assert_eq!(
        say("a", &[3, 2]),
        format!("{path}: weight a: has the shape [2, 3] where [3, 2] is needed")
    );
    assert_eq!(
        say("d", &[1]),
        format!("{path}: weight d: is stored as I64; F64, F32, F16 and BF16 can be read")
    );
    assert_eq!(
        say("e", &[1]),
        format!(
            "{}: weight e: missing: the file is of another model, or incomplete",
            folder.path().display()
        )
    );
}

#[test]
fn a_file_that_is_cut_short_is_refused_when_it_is_opened_and_when_it_is_read() {
    let whole = small();
    assert!(refused(&whole[..whole.len() - 3]).contains("cut short: download it again"));
    assert!(refused(&whole[..20]).contains("or cut short"));
    assert!(refused(&whole[..5]).contains("5 bytes are no safetensors file"));
    assert!(refused(&[whole.as_slice(), &[0]].concat()).contains("longer than its header says"));
    let (_folder, path) = write(&whole);
    let weights = Weights::open(&path).unwrap();
    std::fs::OpenOptions::new()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(whole.len() as u64 - 40)
        .unwrap();
    let error = ["a", "b", "c", "d"]
        .map(|name| weights.get(name, weights.shape(name).unwrap(), &Device::Cpu));
    let cut = error
        .into_iter()
        .filter_map(Result::err)
        .map(|error| error.to_string());
    assert!(
        cut.into_iter()
            .any(|error| error.contains("the file was cut short while it was read"))
    );
}

#[test]
fn a_header_that_promises_too_much_costs_no_memory() {
    let with = |header: &str| {
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.as_bytes());
        refused(&bytes)
    };
    assert!(
        with(r#"{"a":{"dtype":"F32","shape":[1099511627776],"data_offsets":[0,4398046511104]}}"#)
            .contains("cut short")
    );
    assert!(
        with(r#"{"a":{"dtype":"F32","shape":[18446744073709551615,2],"data_offsets":[0,8]}}"#)
            .contains("damaged header")
    );
    assert!(
        with(r#"{"a":{"dtype":"F32","shape":[4],"data_offsets":[8,0]}}"#)
            .contains("damaged header")
    );
    assert!(with("[]").contains("damaged header"));
    assert!(refused(&u64::MAX.to_le_bytes()).contains("not a safetensors file"));
}

/// A file with this header and so many bytes of tensors.
fn with_header(header: &str, bytes: usize) -> Vec<u8> {
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.as_bytes());
    file.resize(file.len() + bytes, 0);
    file
}

#[test]
fn what_stands_twice_in_a_header_is_refused() {
    let a = r#""a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}"#;
    let twice = with_header(&format!("{{{a},{a}}}"), 4);
    let (_folder, path) = write(&twice);
    let error = Weights::open(&path).unwrap_err();
    assert!(
        matches!(&error, Error::Weight { name, .. } if name == "a"),
        "{error}"
    );
    assert!(
        error.to_string().contains("weight a: stands twice"),
        "{error}"
    );
    let metadata = r#""__metadata__":{"fps":"24","fps":"1"}"#;
    let error = refused(&with_header(&format!("{{{metadata},{a}}}"), 4));
    assert!(
        error.contains("fps stands twice under __metadata__"),
        "{error}"
    );
    let shape = a.replace("\"shape\"", "\"shape\":[2],\"shape\"");
    let error = refused(&with_header(&format!("{{{shape}}}"), 4));
    assert!(error.contains("shape stands twice under a"), "{error}");
    let once = with_header(&format!(r#"{{"__metadata__":{{"fps":"24"}},{a}}}"#), 4);
    let (_folder, path) = write(&once);
    assert_eq!(Weights::open(&path).unwrap().says("fps"), Some("24"));
}

#[test]
fn other_formats_are_named_with_a_cure() {
    for (bytes, word) in [
        (&b"PK\x03\x04\0\0\x08\x08\0\0"[..], "save_file"),
        (b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 ", "save_file"),
        (b"GGUF\x03\0\0\0\x01\0", "GGUF"),
    ] {
        let error = refused(bytes);
        assert!(error.contains(word), "{error}");
    }
    // a header of 640 bytes begins like a pickle
    let a = r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#;
    let (_folder, path) = write(&with_header(&format!("{a:640}"), 4));
    assert!(Weights::open(&path).unwrap().has("a"));
}

/// The tensor `name` with one number.
fn one(name: &str, number: f32) -> Vec<u8> {
    let bytes = number.to_le_bytes().to_vec();
    file(&[(name, Dtype::F32, vec![1], bytes)])
}

#[test]
fn a_variant_is_found_under_the_names_of_diffusers() {
    let number = |folder: &Path| {
        let weights = Weights::open(folder)?;
        let tensor = weights.get("a", &[1], &Device::Cpu)?;
        Ok((
            tensor.to_vec1::<f32>()?[0],
            weights.variant().map(str::to_owned),
        ))
    };
    let said = |folder: &Path| -> String {
        let found: Result<(f32, Option<String>)> = number(folder);
        found.unwrap_err().to_string()
    };
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    put("config.json", b"{}");
    assert!(said(folder.path()).contains("model.safetensors: "));
    // sharded, as `save_pretrained(variant="fp16", max_shard_size=…)` names it
    let shard = "diffusion_pytorch_model.fp16-00001-of-00002.safetensors";
    put(shard, &one("a", 2.0));
    assert!(said(folder.path()).contains("model.safetensors.index.json: "));
    put(
        "diffusion_pytorch_model.safetensors.index.fp16.json",
        format!(r#"{{"weight_map":{{"a":"{shard}"}}}}"#).as_bytes(),
    );
    let fp16 = Some("fp16".to_owned());
    assert_eq!(number(folder.path()).unwrap(), (2.0, fp16.clone()));
    // a single file that an earlier save has left
    put("diffusion_pytorch_model.fp16.safetensors", &one("a", 3.0));
    assert_eq!(number(folder.path()).unwrap(), (2.0, fp16.clone()));
    let index = "diffusion_pytorch_model.safetensors.index.fp16.json";
    std::fs::remove_file(folder.path().join(index)).unwrap();
    assert_eq!(number(folder.path()).unwrap(), (3.0, fp16));
    put("diffusion_pytorch_model.bf16.safetensors", &one("a", 4.0));
    let error = said(folder.path());
    assert!(
        error.contains("(bf16, fp16): name the file of one"),
        "{error}"
    );
    put(SINGLE, &one("a", 1.0));
    assert_eq!(number(folder.path()).unwrap(), (1.0, None));
}

#[test]
fn of_an_index_and_a_single_file_the_index_is_taken_as_diffusers_does() {
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    let single = folder.path().join(SINGLE);
    put(SINGLE, &one("a", 1.0));
    assert_eq!(Weights::open(folder.path()).unwrap().passed_over(), None);
    put(INDEX, br#"{"weight_map":{"a":"one.safetensors"}}"#);
    let error = Weights::open(folder.path()).unwrap_err();
    let missing = |e: &Error| matches!(e, Error::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound);
    assert!(missing(&error), "{error:?}");
    let error = error.to_string();
    assert!(
        error.contains("one.safetensors: not there, though diffusion_pytorch_model.safetensors.index.json names it")
            && error.ends_with(&format!("remove the index if {SINGLE} is the model that is meant")),
        "{error}"
    );
    put("one.safetensors", &one("a", 2.0));
    let weights = Weights::open(folder.path()).unwrap();
    let number = weights.get("a", &[1], &Device::Cpu).unwrap();
    assert_eq!(number.to_vec1::<f32>().unwrap(), [2.0]);
    assert_eq!(weights.passed_over(), Some(single.as_path()));
}

#[test]
fn pickles_are_refused_with_a_cure() {
    for (name, variant) in [
        ("diffusion_pytorch_model.bin", ""),
        ("diffusion_pytorch_model.fp16.bin", ", variant=\"fp16\""),
        ("diffusion_pytorch_model-00001-of-00002.bin", ""),
    ] {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(name), "PK").unwrap();
        let error = Weights::open(folder.path()).unwrap_err();
        assert!(matches!(error, Error::File { .. }), "{error}");
        let error = error.to_string();
        let dir = folder.path().display();
        let cure = format!(
            "CLASS.from_pretrained(\"{dir}\"{variant}).save_pretrained(\"{dir}\", safe_serialization=True)"
        );
        assert!(error.contains(name) && error.ends_with(&cure), "{error}");
    }
}

#[test]
fn an_index_and_its_shards_agree_on_every_weight() {
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    let said = |map: &str| {
        put(INDEX, format!(r#"{{"weight_map":{{{map}}}}}"#).as_bytes());
        Weights::open(folder.path()).unwrap_err().to_string()
    };
    put("one.safetensors", &one("a", 1.0));
    put("two.safetensors", &one("b", 2.0));
    let both = r#""a":"one.safetensors","b":"two.safetensors""#;
    let error = said(&format!(r#"{both},"a":"two.safetensors""#));
    assert!(
        error.contains("index.json: weight a: stands there twice"),
        "{error}"
    );
    let error = said(&both.replace("\"b\"", "\"a2\"").replace("two", "one"));
    assert!(
        error.contains("one.safetensors: weight a2: missing"),
        "{error}"
    );
    let error = said(r#""a":"two.safetensors","b":"one.safetensors""#);
    assert!(
        error.contains("two.safetensors: weight a: missing")
            && error.contains("(it is in one.safetensors)"),
        "{error}"
    );
    let number = |x: f32| (Dtype::F32, vec![1], x.to_le_bytes().to_vec());
    let two = [("a", number(3.0)), ("b", number(2.0))].map(|(n, (d, s, b))| (n, d, s, b));
    put("two.safetensors", &file(&two));
    let error = said(both);
    assert!(
        error.contains("two.safetensors: weight a: is in ")
            && error.contains("one.safetensors as well"),
        "{error}"
    );
}

#[test]
fn two_weights_do_not_become_one_by_their_names() {
    let (_folder, path) = write(&small());
    let weights = Weights::open(&path).unwrap();
    let error = weights.renamed(|_| Some("x".to_owned())).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("weight b: is the same weight as a"),
        "{error}"
    );
}

#[test]
fn shards_are_found_by_their_index() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = |x: f32| x.to_le_bytes().to_vec();
    let one = file(&[("a", Dtype::F32, vec![1], bytes(1.0))]);
    let two = file(&[("b", Dtype::F32, vec![1], bytes(2.0))]);
    std::fs::write(folder.path().join("m-00001-of-00002.safetensors"), one).unwrap();
    std::fs::write(folder.path().join("m-00002-of-00002.safetensors"), two).unwrap();
    let index = |map: &str| {
        std::fs::write(
            folder.path().join(INDEX),
            format!(r#"{{"metadata":{{"total_size":8}},"weight_map":{map}}}"#),
        )
        .unwrap();
        Weights::open(folder.path())
    };
    let map = r#"{"a":"m-00001-of-00002.safetensors","b":"m-00002-of-00002.safetensors"}"#;
    let weights = index(map).unwrap();
    assert_eq!(
        weights
            .get("b", &[1], &Device::Cpu)
            .unwrap()
            .to_vec1::<f32>()
            .unwrap(),
        [2.0]
    );
    let error = index(&map.replace("\"b\"", "\"c\""))
        .unwrap_err()
        .to_string();
    assert!(error.contains("weight c: missing, though"), "{error}");
    let error = index(&map.replace("m-00002-of-00002", "../../etc/passwd"))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("is not the name of a file beside it"),
        "{error}"
    );
    let error = index(&map.replace("00002-of", "\\u0000"));
    assert!(matches!(error, Err(Error::File { .. })), "{error:?}");
    let error = index(&map.replace("00002-of", "00003-of"))
        .unwrap_err()
        .to_string();
    assert!(error.contains("m-00003-of-00002.safetensors"), "{error}");
}

#[test]
fn numbers_that_are_none_are_found_in_every_precision() {
    for (dtype, bytes) in [
        (Dtype::F32, f32::NAN.to_le_bytes().to_vec()),
        // more than single precision holds
        (Dtype::F64, 1e39_f64.to_le_bytes().to_vec()),
        (Dtype::F16, half::f16::INFINITY.to_le_bytes().to_vec()),
        (Dtype::BF16, half::bf16::NEG_INFINITY.to_le_bytes().to_vec()),
    ] {
        let data = [vec![0; 3 * bytes.len()], bytes].concat();
        let (_folder, path) = write(&file(&[("decoder.weight", dtype, vec![4], data)]));
        let weights = Weights::open(&path).unwrap();
        let error = weights
            .get("decoder.weight", &[4], &Device::Cpu)
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "{}: weight decoder.weight: number 3 of it is none (NaN or infinite): the file is damaged, download it again",
                path.display()
            )
        );
    }
}

#[test]
fn double_precision_is_rounded_to_single() {
    let data = [1.0 / 3.0, -0.1, 65504.5, 1e-50];
    let bytes = data.iter().flat_map(|x: &f64| x.to_le_bytes()).collect();
    let (_folder, path) = write(&file(&[("w", Dtype::F64, vec![4], bytes)]));
    let weights = Weights::open(&path).unwrap();
    let read = weights.get("w", &[4], &Device::Cpu).unwrap();
    let read: Vec<f32> = read.to_vec1().unwrap();
    assert_eq!(read, [1.0 / 3.0, -0.1, 65504.5, 0.0]);
}

#[test]
fn ones_at_the_end_of_a_shape_do_not_count() {
    let (_folder, path) = write(&small());
    let weights = Weights::open(&path).unwrap();
    let get = |shape: &[usize]| weights.get("a", shape, &Device::Cpu);
    assert_eq!(get(&[2, 3, 1, 1, 1]).unwrap().dims(), [2, 3, 1, 1, 1]);
    assert!(get(&[2, 1, 3]).is_err());
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..200), header in any::<bool>()) {
        if header && bytes.len() >= 8 {
            bytes[0] %= 64;
            bytes[1..8].fill(0);
        }
        let (_folder, path) = write(&bytes);
        let _ = Weights::open(&path);
    }

    #[test]
    fn a_changed_byte_is_noticed_or_harmless(at in 0usize..400, with in any::<u8>()) {
        let mut bytes = small();
        let at = at % bytes.len();
        bytes[at] = with;
        let (_folder, path) = write(&bytes);
        if let Ok(weights) = Weights::open(&path) {
            for name in weights.names() {
                let _ = weights.get(name, weights.shape(name).unwrap(), &Device::Cpu);
            }
        }
    }
}
