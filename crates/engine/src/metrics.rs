//! Names and labels of the engine's metrics. Where v10 has a metric its name is kept, so that dashboards go on.
