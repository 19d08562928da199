"""Declaration of mixtures, one public function for each kind of law of the partition."""
