use std::io::Cursor;

use proptest::prelude::*;

use super::*;

/// A file with this header and so many bytes of data.
pub(in crate::vault) fn file(header: &str, data: usize) -> Vec<u8> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend((0..data).map(|n| u8::try_from(n % 251).unwrap()));
    bytes
}

fn parsed(bytes: &[u8]) -> Result<Header, HeaderError> {
    read(&mut Cursor::new(bytes), bytes.len() as u64)
}

const GOOD: &str = r#"{"__metadata__":{"format":"framepack-tui","section":"2"},
"latents":{"dtype":"BF16","shape":[1,2,3],"data_offsets":[0,12]},
"state":{"dtype":"U8","shape":[4],"data_offsets":[12,16]}}"#;

#[test]
fn a_whole_file_tells_its_tensors() {
    let header = parsed(&file(GOOD, 16)).unwrap();
    assert_eq!(header.metadata["section"], "2");
    assert_eq!(header.data_at, 8 + GOOD.len() as u64);
    assert_eq!(header.data_bytes, 16);
    let latents = header.tensor("latents").unwrap();
    assert_eq!(
        (latents.dtype.as_str(), latents.bytes, &latents.shape[..]),
        ("BF16", 12, &[1, 2, 3][..])
    );
    assert_eq!(header.tensors[1].name, "state");
}

#[test]
fn what_is_wrong_is_said() {
    let says = |bytes: &[u8]| parsed(bytes).unwrap_err().to_string();
    assert_eq!(
        says(&file(GOOD, 10)),
        "it is torn: 6 bytes are missing at its end"
    );
    assert_eq!(
        says(&file(GOOD, 20)),
        "its header is wrong: 4 bytes follow its last tensor"
    );
    let whole = file(GOOD, 16);
    assert!(says(&whole[..40]).starts_with("it is torn"));
    assert!(says(&whole[..5]).starts_with("it is no safetensors file"));
    assert!(says(b"\x89PNG\r\n\x1a\nmore of it").starts_with("it is no safetensors file"));
    assert!(says(&[255; 64]).starts_with("it is no safetensors file"));
    for (header, word) in [
        (
            r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}"#,
            "not behind byte 0",
        ),
        (
            r#"{"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}"#,
            "do not fit",
        ),
        (
            r#"{"a":{"dtype":"F32","shape":[4294967296,4294967296,4],"data_offsets":[0,0]}}"#,
            "do not fit",
        ),
        (
            r#"{"a":{"dtype":"U8","shape":[],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[],"data_offsets":[1,2]}}"#,
            "twice",
        ),
        (r#"{"__metadata__":{"n":1}}"#, "expected a string"),
        (
            r#"{"__metadata__":{"what":"latents","what":"section"}}"#,
            "\"what\" of __metadata__ is there twice",
        ),
        (
            r#"{"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}}"#,
            "u64",
        ),
        (r#"{"a""#, "EOF"),
    ] {
        let said = says(&file(header, 8));
        assert!(
            said.starts_with("its header is wrong") && said.contains(word),
            "{header}: {said}"
        );
    }
}

#[test]
fn a_header_that_claims_gigabytes_is_not_read() {
    struct Endless(u64);
    impl Read for Endless {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            to.fill(b'{');
            self.0 += to.len() as u64;
            Ok(to.len())
        }
    }
    let mut file = Endless(0);
    assert!(read(&mut file, u64::MAX).is_err());
    assert_eq!(file.0, LENGTH);
}

#[test]
fn an_unknown_type_is_taken_at_its_word() {
    let header = r#"{"a":{"dtype":"F4","shape":[2,3],"data_offsets":[0,3]}}"#;
    assert_eq!(parsed(&file(header, 3)).unwrap().tensors[0].bytes, 3);
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = parsed(&bytes);
    }

    #[test]
    fn no_header_makes_it_panic(header in r#"\{("[a_]{1,12}":\{?("dtype":"(F32|U8|X)")?,?("shape":\[[0-9,]{0,40}\])?,?("data_offsets":\[[0-9]{1,20},[0-9]{1,20}\])?\}?,?){0,4}\}?"#, data in 0_usize..64) {
        if let Ok(found) = parsed(&file(&header, data)) {
            let sum: u64 = found.tensors.iter().map(|t| t.bytes).sum();
            prop_assert_eq!(sum, data as u64);
        }
    }

    #[test]
    fn every_cut_of_a_whole_file_is_no_whole_file(cut in 0_usize..300) {
        let whole = file(GOOD, 16);
        prop_assume!(cut < whole.len());
        prop_assert!(parsed(&whole[..cut]).is_err());
    }

    #[test]
    fn what_was_written_is_read(shapes in prop::collection::vec(prop::collection::vec(0_u64..5, 0..4), 0..5), meta in prop::collection::btree_map("[a-z]{1,8}", ".{0,20}", 0..5)) {
        let (mut at, mut map) = (0, serde_json::Map::new());
        for (n, shape) in shapes.iter().enumerate() {
            let bytes = shape.iter().product::<u64>() * 4;
            let told = serde_json::json!({"dtype": "F32", "shape": shape, "data_offsets": [at, at + bytes]});
            map.insert(format!("t{n}"), told);
            at += bytes;
        }
        map.insert("__metadata__".to_owned(), serde_json::to_value(&meta).unwrap());
        let text = serde_json::Value::Object(map).to_string();
        let found = parsed(&file(&text, usize::try_from(at).unwrap())).unwrap();
        prop_assert_eq!(&found.metadata, &meta);
        for (n, shape) in shapes.iter().enumerate() {
            prop_assert_eq!(&found.tensor(&format!("t{n}")).unwrap().shape, shape);
        }
    }
}

/// As the agent's `header_of` wrote it.
const SEALED: &str = r#"{"__metadata__":{"version":"1","prompt":"a \"b\" \\ / \u00e9 \u007f \n \u0001 \ud83d\ude00","run":"r","sha256":"0","seal":"d4b5fc963383c5d32cd8658b0e5fdf6e8d7b2ba229fd1096c4ea8e7ebe5c7e2d"},"latents":{"dtype":"U8","shape":[1,2],"data_offsets":[0,2]},"global_torch":{"dtype":"U8","shape":[3],"data_offsets":[2,5]}}"#;

#[test]
fn a_seal_holds_until_the_header_is_changed() {
    let seal = |header: &str| parsed(&file(header, 5)).unwrap().seal;
    assert_eq!(seal(SEALED), Digest::Holds);
    // how it is written is not what it says
    assert_eq!(seal(&SEALED.replace("\\u00e9", "\u{e9}")), Digest::Holds);
    for (from, to) in [
        ("\\u00e9", "e"),
        ("[1,2]", "[2,1]"),
        ("\"run\":\"r\"", "\"run\":\"s\""),
    ] {
        let other = SEALED.replace(from, to);
        assert_ne!(other, SEALED);
        assert_eq!(seal(&other), Digest::Differs, "{from}");
    }
    assert_eq!(parsed(&file(GOOD, 16)).unwrap().seal, Digest::NotTold);
}
