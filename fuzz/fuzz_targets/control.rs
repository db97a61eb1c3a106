//! Bytes from the control socket, of both directions: no panic, nothing grows, messages come
//! back.
#![no_main]

use framepack_tui::supervise::control::{
    LONGEST_REQUEST, Messages, ToSupervisor, ToViewer, encode,
};
use libfuzzer_sys::fuzz_target;

fn read<T>(data: &[u8])
where
    T: serde::Serialize + for<'a> serde::Deserialize<'a> + PartialEq + std::fmt::Debug,
{
    let mut messages = Messages::new(LONGEST_REQUEST);
    for piece in data.chunks(37) {
        messages.push(piece);
        loop {
            let message: T = match messages.take() {
                Ok(Some(message)) => message,
                Ok(None) => break,
                Err(_) => return,
            };
            let mut again = Messages::new(usize::MAX);
            again.push(&encode(&message).unwrap());
            assert_eq!(again.take::<T>().unwrap(), Some(message));
        }
    }
}

fuzz_target!(|data: &[u8]| {
    read::<ToSupervisor>(data);
    read::<ToViewer>(data);
});
