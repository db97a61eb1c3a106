//! The first message to a guardian: one empty line, and with it the open lock file of the card.
//!
//! The file travels through the socket (`SCM_RIGHTS`) because a descriptor that is inherited would
//! for a moment be inherited by every other process that the supervisor starts.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// A line that is no request.
const LINE: &[u8] = b"\n";

/// Sends the message; it waits in the socket until the guardian reads it.
pub(super) fn send(socket: &UnixStream, lock: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let files: Vec<BorrowedFd<'_>> = lock.into_iter().collect();
    if !files.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(&files));
    }
    let line = [IoSlice::new(LINE)];
    sendmsg(socket.as_fd(), &line, &mut ancillary, SendFlags::empty())?;
    Ok(())
}

/// Takes the message. The file is closed in whatever we start (`O_CLOEXEC`).
pub(super) fn receive(socket: &UnixStream) -> io::Result<Option<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut line = [0; LINE.len()];
    let mut into = [IoSliceMut::new(&mut line)];
    recvmsg(
        socket.as_fd(),
        &mut into,
        &mut ancillary,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    let lock = ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut files) => files.next(),
        _ => None,
    });
    Ok(lock)
}

#[cfg(test)]
mod tests {
    use rustix::fs::{FlockOperation, flock};

    use super::*;

    #[test]
    fn a_lock_lasts_until_both_ends_have_let_go_of_it() {
        let tmp = tempfile::NamedTempFile::new().unwrap();
        let again = || std::fs::File::open(tmp.path()).unwrap();
        let taken =
            |file: &std::fs::File| flock(file, FlockOperation::NonBlockingLockExclusive).is_err();
        let (ours, theirs) = UnixStream::pair().unwrap();
        let lock = again();
        flock(&lock, FlockOperation::LockExclusive).unwrap();
        send(&ours, Some(lock.as_fd())).unwrap();
        drop(lock);
        assert!(taken(&again()), "it is on its way");
        let theirs_now = receive(&theirs).unwrap();
        assert!(taken(&again()));
        drop(theirs_now.unwrap());
        assert!(!taken(&again()));
        send(&ours, None).unwrap();
        assert!(receive(&theirs).unwrap().is_none());
    }
}
