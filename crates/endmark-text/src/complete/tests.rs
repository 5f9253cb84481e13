mod cases;
mod documentation;
mod properties;
mod reference;
