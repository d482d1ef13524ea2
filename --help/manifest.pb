EtcŒ@”Mô
0.1.0,

hash-model	HashModel (08@H„P€ h„
anyf32 "Y
prefillhash_model_prefill (0@B

append B	
barrierB
attend0B
logits("W
decodehash_model_decode (0@B

append B	
barrierB
attend0B
logits(*
€f322
saltf32„"	row-major0:
	phases.so kJŸij>ş:
tokenizer.jsonİü`‹€aì’:
weights.binäÀÏAqğ