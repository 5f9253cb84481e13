mod generator;
mod properties;
mod worked;
