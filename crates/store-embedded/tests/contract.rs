//! The adapters keep the contracts of their ports.

use std::sync::Arc;

use maestro_engine::ports::contract;
use maestro_store_embedded::EmbeddedStore;

#[tokio::test]
async fn the_store_keeps_its_contract() {
    let root = tempfile::tempdir().unwrap();
    let fresh = || async {
        let directory = tempfile::tempdir_in(&root).unwrap().keep();
        Arc::new(EmbeddedStore::open(&directory).unwrap()) as Arc<dyn maestro_engine::ports::Store>
    };
    contract::run_store_suites(fresh).await;
}
