// A name with a value, as the forms hold it.

export interface Pair {
  name: string;
  value: string;
}
