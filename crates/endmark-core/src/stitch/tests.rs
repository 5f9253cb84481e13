mod chains;
mod doubts;
mod form;
mod generator;
mod properties;
mod streamed;
mod told;
mod worked;
