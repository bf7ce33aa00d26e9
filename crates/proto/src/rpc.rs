//! What the methods of all services have in common.

/// A method of a service.
pub trait Method: Copy + Send + Sync + 'static {
    /// As gRPC writes it, `/package.Service/Method`.
    const PATH: &'static str;
    type Request;
    type Response;
}

/// A request that HTTP has partly in its path.
pub trait Named {
    /// The fields that are in the path, in the path's order. One that is sent to several paths may have fewer there.
    fn names_mut(&mut self) -> Vec<&mut String>;
}

include!(concat!(env!("OUT_DIR"), "/names.rs"));
