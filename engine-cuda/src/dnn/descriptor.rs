//! The objects that cuDNN's graph interface is made of.

use std::ffi::c_void;

use candle_core::cuda_backend::cudarc::cudnn::sys;
use sys::cudnnBackendAttributeName_t as Attribute;
use sys::cudnnBackendAttributeType_t as Kind;
use sys::cudnnBackendDescriptorType_t as Object;

use crate::error::{Result, failed};
use crate::memory::long;

/// An object of cuDNN's, destroyed when dropped.
#[derive(Debug)]
pub(super) struct Descriptor(pub(super) sys::cudnnBackendDescriptor_t);

impl Descriptor {
    pub(super) fn new(kind: Object) -> Result<Self> {
        let mut own = std::ptr::null_mut();
        // SAFETY: the descriptor is written to a place of its type.
        check("cudnnBackendCreateDescriptor", unsafe {
            sys::cudnnBackendCreateDescriptor(kind, &raw mut own)
        })?;
        Ok(Self(own))
    }

    pub(super) fn finish(&self) -> Result<()> {
        // SAFETY: the descriptor is alive.
        check("cudnnBackendFinalize", unsafe {
            sys::cudnnBackendFinalize(self.0)
        })
    }

    /// Sets an attribute to values whose type is the one that `kind` names.
    pub(super) fn set<T: Copy>(
        &self,
        attribute: Attribute,
        kind: Kind,
        values: &[T],
    ) -> Result<()> {
        // SAFETY: as many values as said are read; every call here gives values of the type that `kind` names.
        check("cudnnBackendSetAttribute", unsafe {
            sys::cudnnBackendSetAttribute(
                self.0,
                attribute,
                kind,
                long(values.len()),
                values.as_ptr().cast(),
            )
        })
    }

    pub(super) fn set_objects(&self, attribute: Attribute, objects: &[&Self]) -> Result<()> {
        let all: Vec<_> = objects.iter().map(|object| object.0).collect();
        self.set(attribute, Kind::CUDNN_TYPE_BACKEND_DESCRIPTOR, &all)
    }

    /// How many values an attribute has.
    fn count(&self, attribute: Attribute, kind: Kind) -> Result<i64> {
        let mut count = 0;
        // SAFETY: nothing but the count is written.
        check("cudnnBackendGetAttribute", unsafe {
            sys::cudnnBackendGetAttribute(
                self.0,
                attribute,
                kind,
                0,
                &raw mut count,
                std::ptr::null_mut(),
            )
        })?;
        Ok(count)
    }

    /// Values of plain numbers: `T` has the size of what `kind` names.
    pub(super) fn numbers<T: Copy + Default>(
        &self,
        attribute: Attribute,
        kind: Kind,
    ) -> Result<Vec<T>> {
        // the number of notes cannot be asked for in every version, but there are few kinds
        let count = self.count(attribute, kind).unwrap_or(1).clamp(1, 64);
        let mut values = vec![T::default(); 64];
        let mut found = 0;
        // SAFETY: at most `count` values are written, and there is room for 64.
        check("cudnnBackendGetAttribute", unsafe {
            sys::cudnnBackendGetAttribute(
                self.0,
                attribute,
                kind,
                count,
                &raw mut found,
                values.as_mut_ptr().cast(),
            )
        })?;
        values.truncate(usize::try_from(found).unwrap_or(0));
        Ok(values)
    }

    pub(super) fn objects(&self, attribute: Attribute, kind: Object) -> Result<Vec<Self>> {
        let count = self
            .count(attribute, Kind::CUDNN_TYPE_BACKEND_DESCRIPTOR)?
            .clamp(0, 256);
        let mut own: Vec<Self> = (0..count).map(|_| Self::new(kind)).collect::<Result<_>>()?;
        let mut pointers: Vec<*mut c_void> = own.iter().map(|object| object.0).collect();
        let mut found = 0;
        // SAFETY: `count` made descriptors are handed over to be filled, as the interface wants it.
        check("cudnnBackendGetAttribute", unsafe {
            sys::cudnnBackendGetAttribute(
                self.0,
                attribute,
                Kind::CUDNN_TYPE_BACKEND_DESCRIPTOR,
                count,
                &raw mut found,
                pointers.as_mut_ptr().cast(),
            )
        })?;
        own.truncate(usize::try_from(found).unwrap_or(0));
        Ok(own)
    }

    pub(super) fn object(&self, attribute: Attribute, kind: Object) -> Result<Self> {
        let own = Self::new(kind)?;
        let mut pointer = own.0;
        let mut found = 0;
        // SAFETY: one made descriptor is handed over to be filled.
        check("cudnnBackendGetAttribute", unsafe {
            sys::cudnnBackendGetAttribute(
                self.0,
                attribute,
                Kind::CUDNN_TYPE_BACKEND_DESCRIPTOR,
                1,
                &raw mut found,
                (&raw mut pointer).cast(),
            )
        })?;
        Ok(own)
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: nothing refers to the descriptor after this.
        let _ = unsafe { sys::cudnnBackendDestroyDescriptor(self.0) };
    }
}

pub(super) fn check(what: &str, status: sys::cudnnStatus_t) -> Result<()> {
    if status == sys::cudnnStatus_t::CUDNN_STATUS_SUCCESS {
        return Ok(());
    }
    failed(format!("{what}: {status:?}"))
}
