// The start of the page.
import { mount } from 'svelte';
import './style/tokens.css';
import './style/base.css';
import './style/forms.css';
import './style/tables.css';
import './style/tones.css';
import App from './App.svelte';
import { appearance } from './lib/theme.svelte';

appearance.apply();
const target = document.getElementById('app');
if (target) {
  mount(App, { target });
}
