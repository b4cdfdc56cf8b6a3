// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// Makes several calls, each with a gas limit of its own, and lets single calls fail. It runs as the constructor of a contract that is
/// never created: a transaction without recipient executes it, and `eth_call` returns its report. It holds nothing and needs no deployment.
contract CallBatch {
    struct Call {
        address target;
        uint256 gasLimit;
        /// Empty: no call is made, and the report has the target's code hash (EIP-1052).
        bytes data;
    }

    /// With `report`, it returns two words for each call. The first is 1 for success, shifted left by 255, plus the gas used; the second
    /// is the first word of the returned data. By default it returns nothing. An account without code «succeeds», as in the EVM.
    constructor(Call[] memory calls, bool report) {
        uint256[] memory words = new uint256[](report ? 2 * calls.length : 0);
        for (uint256 i = 0; i < calls.length; ++i) {
            (uint256 outcome, uint256 word) = execute(calls[i]);
            if (report) (words[2 * i], words[2 * i + 1]) = (outcome, word);
        }
        assembly ("memory-safe") {
            return(add(words, 32), mul(32, mload(words)))
        }
    }

    /// Copies one word of the returned data at most, so that a callee cannot make the batch pay for more.
    function execute(Call memory call) private returns (uint256 outcome, uint256 word) {
        if (call.data.length == 0) return (1 << 255, uint256(call.target.codehash));
        (address target, uint256 gasLimit, bytes memory data) = (call.target, call.gasLimit, call.data);
        uint256 before = gasleft();
        bool success;
        assembly ("memory-safe") {
            mstore(0, 0)
            success := call(gasLimit, target, 0, add(data, 32), mload(data), 0, 32)
            word := mload(0)
        }
        outcome = (before - gasleft()) | (success ? 1 << 255 : 0);
    }
}
