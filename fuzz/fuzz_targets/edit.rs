//! A profile's text ▸ an own profile with other settings: no panic, and the result is
//! a profile with these settings.
#![no_main]

use std::sync::{Arc, LazyLock};

use framepack_tui::model::Setting;
use framepack_tui::profile::edit::{NewProfile, save_as, value_in};
use framepack_tui::profile::{Catalog, Owner, Source, parse};
use libfuzzer_sys::fuzz_target;

static CATALOG: LazyLock<Catalog> = LazyLock::new(|| Catalog::with_folder(None));

fuzz_target!(|data: &[u8]| {
    let Some((first, rest)) = data.split_first() else {
        return;
    };
    let text = String::from_utf8_lossy(rest).into_owned();
    let source = |text: String| Source {
        name: "fuzz.toml".to_owned(),
        text,
        owner: Owner::User,
    };
    let changes: Vec<_> = Setting::ALL
        .into_iter()
        .enumerate()
        .filter(|(n, _)| first >> n & 1 == 1)
        .map(|(_, s)| (s, Some(s.example().to_owned())))
        .collect();
    let new = NewProfile {
        id: "mine".to_owned(),
        title: None,
    };
    if let Ok(edited) = save_as(&CATALOG, &source(text), &new, &changes) {
        let read = parse(&Arc::new(source(edited.text))).expect("what was made is a profile");
        for (setting, value) in &changes {
            assert_eq!(value_in(&read, *setting).map(|(v, _)| v), *value);
        }
    }
});
