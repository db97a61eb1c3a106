//! The driver's memory pool that all our memory comes from: with a size that it never exceeds, and counters.

use candle_core::cuda_backend::cudarc::driver::sys;

use crate::error::{Result, wrap};

/// Pool sizes are multiples of this.
const STEP: u64 = 2 << 20;

/// A memory pool of a device.
#[derive(Debug)]
pub struct Pool {
    handle: sys::CUmemoryPool,
    device: sys::CUdevice,
    cap: Option<u64>,
}

// SAFETY: the driver's pools may be used from any thread.
unsafe impl Send for Pool {}
// SAFETY: as above.
unsafe impl Sync for Pool {}

/// Bytes of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// In use now.
    pub used: u64,
    /// The most that was in use since the last [`Pool::reset_high`].
    pub used_high: u64,
    /// Taken from the card now, in use or not.
    pub reserved: u64,
    /// The most that was taken.
    pub reserved_high: u64,
}

impl Pool {
    /// Makes a pool of at most `cap` bytes the one that `device` allocates from. A pool keeps what it has taken until
    /// [`Pool::release`].
    pub(crate) fn new(device: sys::CUdevice, cap: Option<u64>) -> Result<Self> {
        let mut own = Self {
            handle: std::ptr::null_mut(),
            device,
            cap: cap.map(|cap| (cap / STEP).max(1) * STEP),
        };
        // SAFETY: plain numbers, for which zeros stand for the defaults.
        let mut properties: sys::CUmemPoolProps = unsafe { std::mem::zeroed() };
        properties.allocType = sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
        properties.handleTypes = sys::CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE;
        properties.location.type_ = sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
        properties.location.id = device;
        properties.maxSize = own
            .cap
            .map_or(0, |cap| usize::try_from(cap).unwrap_or(usize::MAX));
        // SAFETY: the pool is written to a place of its type, the properties are read.
        unsafe { sys::cuMemPoolCreate(&raw mut own.handle, &raw const properties) }
            .result()
            .map_err(wrap)?;
        own.set(
            sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
            u64::MAX,
        )?;
        // SAFETY: the pool was just made for this device.
        unsafe { sys::cuDeviceSetMemPool(device, own.handle) }
            .result()
            .map_err(wrap)?;
        Ok(own)
    }

    /// The most bytes that it gives out; `None`: as many as the card has.
    pub fn cap(&self) -> Option<u64> {
        self.cap
    }

    /// What is in use and was.
    pub fn usage(&self) -> Result<Usage> {
        Ok(Usage {
            used: self.get(sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT)?,
            used_high: self.get(sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_HIGH)?,
            reserved: self.get(sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)?,
            reserved_high: self.get(sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH)?,
        })
    }

    /// Starts the counts of the most anew.
    pub fn reset_high(&self) -> Result<()> {
        self.set(sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_HIGH, 0)?;
        self.set(
            sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH,
            0,
        )
    }

    /// Gives everything that is not in use back to the card.
    pub fn release(&self) -> Result<()> {
        // SAFETY: the pool is alive.
        unsafe { sys::cuMemPoolTrimTo(self.handle, 0) }
            .result()
            .map_err(wrap)
    }

    fn get(&self, attribute: sys::CUmemPool_attribute) -> Result<u64> {
        let mut value = 0u64;
        // SAFETY: all attributes asked for here are 64-bit numbers.
        unsafe { sys::cuMemPoolGetAttribute(self.handle, attribute, (&raw mut value).cast()) }
            .result()
            .map_err(wrap)?;
        Ok(value)
    }

    fn set(&self, attribute: sys::CUmemPool_attribute, mut value: u64) -> Result<()> {
        // SAFETY: all attributes set here are 64-bit numbers.
        unsafe { sys::cuMemPoolSetAttribute(self.handle, attribute, (&raw mut value).cast()) }
            .result()
            .map_err(wrap)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let (mut now, mut usual) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the device gets its own pool back, unless another of ours has taken the place meanwhile; memory still in
        // use keeps this one alive until it is freed.
        unsafe {
            let ours = sys::cuDeviceGetMemPool(&raw mut now, self.device)
                .result()
                .is_ok()
                && now == self.handle;
            if ours
                && sys::cuDeviceGetDefaultMemPool(&raw mut usual, self.device)
                    .result()
                    .is_ok()
            {
                let _ = sys::cuDeviceSetMemPool(self.device, usual);
            }
            let _ = sys::cuMemPoolDestroy(self.handle);
        }
    }
}
