// A name with a value, in a form.

export interface Pair {
  name: string;
  value: string;
}
