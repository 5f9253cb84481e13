mod chains;
mod doubts;
mod generator;
mod properties;
mod streamed;
mod worked;
